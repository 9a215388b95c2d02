/* The meaning of the class, id, role and style of an element: pgsimhash/html/blocks.py, named()
 * and is_hidden(). */

#include "characters.h"
#include "page.h"

#define NAMES_MAX 500

/* Return the place behind a word of ASCII letters and hyphens, in any case, or NULL. */
static const uint8_t *skip_word(const uint8_t *at, const char *word) {
    for (; *word; word++, at++)
        if ((*at | 32) != (uint8_t)*word || *at < ' ') return NULL;
    return at;
}

static const uint8_t *skip_blanks(const uint8_t *at) {
    while (*at == ' ' || (*at >= '\t' && *at <= '\r')) at++;
    return at;
}

/* What the style of an element says of one property. */
typedef struct {
    bool is_given, hides, is_important;
} Declared;

/* The pattern _DECLARED: `name : word` or `name : word !important` stands at a place. */
static void declare(const uint8_t *at, const char *name, const char *hiding, Declared *declared) {
    at = skip_word(skip_blanks(at), name);
    if (at == NULL || *(at = skip_blanks(at)) != ':') return;
    const uint8_t *value = at = skip_blanks(at + 1);
    while (is_lower(*at) || is_upper(*at) || *at == '-') at++;
    bool hides = skip_word(value, hiding) == at, is_empty = at == value;
    at = skip_blanks(at);
    bool is_important = *at == '!';
    if (is_important && (at = skip_word(skip_blanks(at + 1), "important")) != NULL)
        at = skip_blanks(at);
    if (is_empty || at == NULL || (*at && *at != ';')) return;
    if (is_important || !declared->is_important)
        *declared = (Declared){true, hides, is_important};
}

/* Whether a style hides an element, or else whether it says how to show it. */
static Status style_hides(const uint8_t *style, bool *displays) {
    Declared display = {false}, visibility = {false}, animation = {false};
    for (const uint8_t *at = style; at != NULL;) {
        declare(at, "display", "none", &display);
        declare(at, "visibility", "hidden", &visibility);
        declare(at, "animation-name", "none", &animation);
        at = (const uint8_t *)strchr((const char *)at, ';');
        if (at != NULL) at++;
    }
    *displays = display.is_given;
    bool is_unseen = visibility.hides && !animation.is_given;
    return display.hides || is_unseen ? HIDDEN : DONE;
}

/* The pattern _STREAMED: React's hidden elements that a script moves into place. */
static bool is_streamed(const uint8_t *id) {
    if (id[0] != 'S' || id[1] != ':' || !id[2]) return false;
    for (id += 2; *id; id++)
        if (!is_digit(*id) && !(*id >= 'a' && *id <= 'f')) return false;
    return true;
}

/* Whether `hidden` has the value that browsers show when they search. */
static bool is_until_found(const Node *hidden) {
    const uint8_t *value = attribute_value(hidden);
    const uint8_t *end = value == NULL ? NULL : skip_word(value, "until-found");
    return end != NULL && *end == 0;
}

typedef struct {
    const uint8_t *classes, *id, *role;
    bool hidden;
} Attributes;

/* Read the attributes that matter. HIDDEN by its style, or by `hidden`. */
static Status read_attributes(const Node *element, Attributes *read) {
    const uint8_t *empty = (const uint8_t *)"";
    *read = (Attributes){empty, empty, empty, false};
    Status status = DONE;
    bool displays = false;
    for (const Node *attribute = element->properties; attribute; attribute = attribute->next) {
        const char *name = (const char *)attribute->name;
        const uint8_t **into = NULL;
        bool is_style = strcmp(name, "style") == 0;
        if (strcmp(name, "class") == 0) into = &read->classes;
        else if (strcmp(name, "id") == 0) into = &read->id;
        else if (strcmp(name, "role") == 0) into = &read->role;
        else if (strcmp(name, "hidden") == 0) read->hidden |= !is_until_found(attribute);
        else if (strcmp(name, "popover") == 0) read->hidden = true;
        if (into == NULL && !is_style) continue;
        const uint8_t *value = attribute_value(attribute);
        if (value == NULL) return UNSUPPORTED;
        if (into != NULL) *into = value;
        else status = style_hides(value, &displays);
        if (status != DONE) return status;
    }
    return read->hidden && !displays && !is_streamed(read->id) ? HIDDEN : DONE;
}

Status is_hidden(const Node *element) {
    Attributes attributes;
    return read_attributes(element, &attributes);
}

/* The size in bytes of the first NAMES_MAX characters. */
static size_t size_of_start(const uint8_t *string, size_t size) {
    if (size <= NAMES_MAX) return size;
    return (size_t)(skip_characters(string, string + size, NAMES_MAX) - string);
}

/* The end of a word at `at`, by the pattern _CAMEL: [A-Z]?[a-z]+|[A-Z]+; `at` if there is none. */
static const uint8_t *camel_end(const uint8_t *at, const uint8_t *end) {
    const uint8_t *start = at;
    if (at + 1 < end && is_upper(at[0]) && is_lower(at[1])) at++;
    if (is_lower(*at)) {
        while (at < end && is_lower(*at)) at++;
    } else if (at == start) {
        while (at < end && is_upper(*at)) at++;
    }
    return at;
}

typedef struct {
    Page *page;
    const Tables *tables;
    uint32_t flags;       /* of the names that ended */
    uint32_t some, each;  /* of the words of this name: flags of some of them, flags of each */
    int32_t first;        /* the number of the first word, or 0 */
} Names;

/* A name ends, _flags_of_name(): it sets an element apart if it has such a word, or consists of
 * words that do so together, and does not name a state. */
static void end_name(Names *names) {
    uint32_t some = names->some;
    if (some & NAME_SHORT && names->each & NAME_WITH_SHORT) some |= NAMED_APART;
    if (some & NAME_STATE) some &= ~(uint32_t)(NAMED_APART | NAMED_BELOW);
    if (some & (NAMED_BESIDE | NAMED_FOOTER | NAMED_APART)) some &= ~(uint32_t)NAMED_NOTE;
    names->flags |= some & (2 * NAMED_TEASER - 1);
    names->some = 0;
    names->each = ~0u;
}

static Status add_name(Names *names, const uint8_t *word, size_t length) {
    uint32_t flags = (uint32_t)table_get(&names->tables->names, word, length, 0);
    if (!(names->some & NAME_TOPIC)) {
        names->some |= flags;
        names->each &= flags;
    }
    if (names->first) return DONE;
    return table_number(&names->page->first_names, word, length, hash_of(word, length),
                        &names->first);
}

static Status add_names(Names *names, const uint8_t *text, size_t size) {
    uint8_t word[8 * NAMES_MAX]; /* behind the word before it in the same name */
    const uint8_t *end = text + size;
    size_t before = 0;
    for (const uint8_t *at = text; at < end;) {
        const uint8_t *behind = camel_end(at, end);
        size_t length = (size_t)(behind - at);
        if (length == 0) {
            uint32_t code;
            at += decode(at, end, &code);
            if (is_space(code)) {
                end_name(names);
                before = 0;
            }
            continue;
        }
        for (size_t i = 0; i < length; i++) word[before + i] = at[i] | 32;
        const Table *known = &names->tables->names;
        if (before && !(names->some & NAME_TOPIC))
            names->some |= (uint32_t)table_get(known, word, before + length, 0) &
                           (NAMED_NOTE | NAMED_APART | NAMED_BELOW);
        Status status = add_name(names, word + before, length);
        if (status != DONE) return status;
        memmove(word, word + before, length);
        before = length;
        at = behind;
    }
    end_name(names);
    return DONE;
}

static Status add_role(Names *names, const uint8_t *role, size_t size) {
    uint8_t word[4 * NAMES_MAX + 5];
    memcpy(word, "role=", 5);
    for (size_t i = 0; i < size; i++) word[5 + i] = is_upper(role[i]) ? role[i] | 32 : role[i];
    Status status = add_name(names, word, 5 + size);
    end_name(names);
    return status;
}

/* Whether a class is one of _HIDING. */
static bool class_hides(const Tables *tables, const uint8_t *classes, size_t size) {
    const uint8_t *end = classes + size;
    if (memchr(classes, ':', size) != NULL) return false;
    for (const uint8_t *at = skip_space(classes, end); at < end; at = skip_space(at, end)) {
        const uint8_t *start = at;
        while (at < end) {
            uint32_t code;
            size_t width = decode(at, end, &code);
            if (is_space(code)) break;
            at += width;
        }
        if (table_get(&tables->hiding, start, (size_t)(at - start), 0)) return true;
    }
    return false;
}

Status names_of(const Node *element, const Tables *tables, Page *page, uint32_t *flags,
                int32_t *first) {
    Attributes read;
    Status status = read_attributes(element, &read);
    if (status != DONE || (!*read.classes && !*read.id && !*read.role)) return status;
    if (!is_ascii(read.role)) return UNSUPPORTED;
    size_t classes = size_of_start(read.classes, strlen((const char *)read.classes));
    size_t id = size_of_start(read.id, strlen((const char *)read.id));
    size_t role = size_of_start(read.role, strlen((const char *)read.role));
    /* Class and id are one text, cut again. */
    uint8_t text[8 * NAMES_MAX + 1];
    memcpy(text, read.classes, classes);
    size_t size = classes;
    if (id) {
        text[size++] = ' ';
        memcpy(text + size, read.id, id);
        size += id;
    }
    Names names = {.page = page, .tables = tables, .each = ~0u};
    status = add_names(&names, text, size_of_start(text, size));
    if (status == DONE && role) status = add_role(&names, read.role, role);
    if (status != DONE) return status;
    *flags = names.flags | (class_hides(tables, read.classes, classes) ? NAMED_HIDDEN : 0);
    *first = names.first;
    return DONE;
}
