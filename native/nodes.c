/* Elements and attributes of the tree of libxml2. */
#include "page.h"

const Node *element_from(const Node *node, bool *is_unsupported) {
    for (; node != NULL; node = node->next) {
        if (node->type == NODE_ELEMENT) return node;
        if (node->type == NODE_COMMENT || node->type == NODE_INSTRUCTION ||
            node->type == NODE_ENTITY) {
            *is_unsupported = true;
            return NULL;
        }
    }
    return NULL;
}

const uint8_t *attribute_value(const Node *attribute) {
    const Node *value = attribute->children;
    if (value == NULL) return (const uint8_t *)"";
    if (value->next != NULL || !is_text(value)) return NULL;
    return value->content == NULL ? (const uint8_t *)"" : value->content;
}

static bool is_skipped(const Node *node) {
    return node->type == NODE_XINCLUDE_START || node->type == NODE_XINCLUDE_END;
}

static bool has_content(const Node *text) { return text->content != NULL && text->content[0]; }

bool text_from(Buffer *joined, const Node *first, const uint8_t **text, size_t *size) {
    const Node *only = NULL;
    int pieces = 0;
    for (const Node *node = first; node != NULL && (is_text(node) || is_skipped(node));
         node = node->next) {
        if (is_text(node) && has_content(node)) {
            only = node;
            pieces++;
        }
    }
    *size = 0;
    if (pieces == 1) {
        *text = only->content;
        *size = strlen((const char *)only->content);
    }
    if (pieces < 2) return true;
    joined->size = 0;
    for (const Node *node = first; node != NULL && (is_text(node) || is_skipped(node));
         node = node->next) {
        if (is_text(node) && has_content(node) &&
            !buffer_add(joined, node->content, strlen((const char *)node->content)))
            return false;
    }
    *text = joined->data;
    *size = joined->size;
    return true;
}
