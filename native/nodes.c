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
