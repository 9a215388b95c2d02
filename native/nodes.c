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

const Tag *tag_of(Tag *kept, const Tables *tables, const Node *node) {
    Tag *tag = kept + ((uintptr_t)node->name >> 3) % TAGS_KEPT;
    if (tag->name != node->name) {
        size_t length = strlen((const char *)node->name);
        tag->name = node->name;
        tag->flags = (uint32_t)table_get(&tables->tags, node->name, length, 0);
        tag->number = table_get(&tables->block_tags, node->name, length, 0);
    }
    return tag;
}

/* Add the text that begins at a node, as lxml joins text nodes. */
static Status read_text(const Node *first, AddText *add_text, void *walk) {
    Buffer joined = {0};
    const uint8_t *text = NULL;
    size_t size = 0;
    bool fits = true;
    for (const Node *node = first; node != NULL && fits; node = node->next) {
        if (node->type == NODE_XINCLUDE_START || node->type == NODE_XINCLUDE_END) continue;
        if (!is_text(node)) break;
        size_t length = node->content == NULL ? 0 : strlen((const char *)node->content);
        if (length && size) {
            fits = (joined.size || buffer_add(&joined, text, size)) &&
                   buffer_add(&joined, node->content, length);
            text = joined.data;
            size = joined.size;
        } else if (length) {
            text = node->content;
            size = length;
        }
    }
    Status status = !fits ? NO_MEMORY : size == 0 ? DONE : add_text(walk, text, text + size);
    buffer_free(&joined);
    return status;
}

Status walk_through(const Node *body, Step *begin, Step *end, AddText *add_text, void *walk) {
    for (const Node *node = body;;) {
        bool is_unsupported = false;
        Status status = begin(walk, node);
        if (status == DONE) status = read_text(node->children, add_text, walk);
        bool is_read = status == DONE;
        const Node *next = is_read ? element_from(node->children, &is_unsupported) : NULL;
        while (next == NULL && !is_unsupported && (status == DONE || status == HIDDEN)) {
            /* The node ends. Its tail belongs to the element around; that of the body is no part
             * of the page. */
            status = is_read ? end(walk, node) : DONE;
            if (status != DONE || node == body) return status;
            status = read_text(node->next, add_text, walk);
            next = element_from(node->next, &is_unsupported);
            if (next == NULL) node = node->parent;
            is_read = true;
        }
        if (status != DONE || is_unsupported) return status != DONE ? status : UNSUPPORTED;
        node = next;
    }
}
