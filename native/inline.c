/* The inline text of a block of Markdown: pgsimhash/html/markdown.py, _Writer.
 *
 * A part is a text or Markdown, in the order of the page. Where an inline element begins is an EMPTY
 * one, until the element ends with words in it.
 */
#include "inline.h"

#include "characters.h"

typedef enum { EMPTY, TEXT, OPENS, CLOSES, IMAGE, BREAK } PartKind;

typedef struct {
    PartKind kind;
    size_t start, size; /* in the text of the parts */
} Part;

/* An open inline element: of which line, the place of its part, and how many texts there were. */
typedef struct {
    int32_t line, place, texts;
} Open;

static const char *const MARKS[][2] = {
    {"a", ""}, {"code", "`"}, {"em", "*"}, {"strong", "**"}, {"b", "**"}, {"i", "*"}, {"kbd", "`"},
    {"samp", "`"}, {"tt", "`"}, {"del", "~~"}, {"s", "~~"}, {"strike", "~~"}, {NULL, ""}};

static const char *mark_of(const Node *node) {
    int place = 0;
    while (MARKS[place][0] && strcmp(MARKS[place][0], (const char *)node->name) != 0) place++;
    return MARKS[place][1];
}

static int32_t part_count(const Inline *line) { return (int32_t)(line->parts.size / sizeof(Part)); }
static Part *part_at(const Inline *line, int32_t place) { return (Part *)line->parts.data + place; }

static Status add_part(Inline *line, PartKind kind, const void *data, size_t size) {
    Part part = {kind, line->text.size, size};
    bool fits = buffer_add(&line->text, data, size) && buffer_add(&line->parts, &part, sizeof part);
    return fits ? DONE : NO_MEMORY;
}

/* Add the string that a function of Python returns; this steals the argument. UNSUPPORTED: it has a
 * lone surrogate, as the URL of a page may. */
static Status add_returned(PyObject *function, PyObject *argument, Buffer *buffer) {
    if (argument == NULL) return RAISED;
    PyObject *result = PyObject_CallFunctionObjArgs(function, argument, NULL);
    Py_DECREF(argument);
    if (result == NULL) return RAISED;
    Py_ssize_t size;
    const char *utf8 = PyUnicode_AsUTF8AndSize(result, &size);
    Status status = utf8 == NULL ? UNSUPPORTED : DONE;
    if (utf8 == NULL) PyErr_Clear();
    else if (!buffer_add(buffer, utf8, (size_t)size)) status = NO_MEMORY;
    Py_DECREF(result);
    return status;
}

Status inline_text(Inline *line, const uint8_t *start, const uint8_t *end) {
    if (skip_space(start, end) == end) return inline_space(line);
    line->texts++;
    return add_part(line, TEXT, start, (size_t)(end - start));
}

Status inline_space(Inline *line) {
    return line->parts.size ? add_part(line, TEXT, " ", 1) : DONE;
}

Status inline_begin(Inline *line, const Node *node, PyObject *element) {
    if (strcmp((const char *)node->name, "br") == 0)
        return line->is_heading || line->in_table ? add_part(line, TEXT, " ", 1)
                                                  : add_part(line, BREAK, "  \n", 3);
    if (strcmp((const char *)node->name, "img") == 0) {
        size_t start = line->text.size;
        Status status = add_returned(line->image, Py_NewRef(element), &line->text);
        Part part = {IMAGE, start, line->text.size - start};
        if (status != DONE || part.size == 0) return status;
        line->texts++;
        return buffer_add(&line->parts, &part, sizeof part) ? DONE : NO_MEMORY;
    }
    Open open = {line->line, part_count(line), line->texts};
    line->code += *mark_of(node) == '`';
    return buffer_add(&line->open, &open, sizeof open) ? add_part(line, EMPTY, "", 0) : NO_MEMORY;
}

Status inline_end(Inline *line, const Node *node, PyObject *element) {
    const char *name = (const char *)node->name, *mark = mark_of(node);
    if (strcmp(name, "br") == 0 || strcmp(name, "img") == 0) return DONE;
    line->open.size -= sizeof(Open);
    Open open = *(Open *)((uint8_t *)line->open.data + line->open.size);
    line->code -= *mark == '`';
    if (line->code || open.line != line->line || open.texts == line->texts) return DONE;
    if (line->is_heading && strcmp(mark, "**") == 0) mark = "";
    Part begin = {OPENS, line->text.size, strlen(mark)};
    Status status = add_part(line, CLOSES, mark, begin.size);
    if (strcmp(name, "a") == 0 && status == DONE) {
        status = add_returned(line->link, Py_NewRef(element), &line->text);
        Part *end = part_at(line, part_count(line) - 1);
        end->size = line->text.size - end->start;
        begin = (Part){OPENS, line->text.size, end->size > 0};
        if (!buffer_add(&line->text, "[", begin.size)) status = NO_MEMORY;
    }
    *part_at(line, open.place) = begin;
    return status;
}

/* What a byte may be besides a part of a word: also the lead of a space. */
enum { SPECIAL = 1, BLANK, LEAD };
static const uint8_t KINDS[256] = {
    ['\\'] = SPECIAL, ['`'] = SPECIAL, ['*'] = SPECIAL, ['_'] = SPECIAL, ['['] = SPECIAL,
    [']'] = SPECIAL, ['<'] = SPECIAL, [' '] = BLANK, ['\t'] = BLANK, ['\n'] = BLANK,
    ['\v'] = BLANK, ['\f'] = BLANK, ['\r'] = BLANK, [28] = BLANK, [29] = BLANK, [30] = BLANK,
    [31] = BLANK, [0xC2] = LEAD, [0xE1] = LEAD, [0xE2] = LEAD, [0xE3] = LEAD};

/* Add words with one space between them, and a backslash before each special character. */
static bool add_words(const uint8_t *at, const uint8_t *end, bool escapes, Buffer *buffer) {
    size_t before = buffer->size;
    bool fits = true;
    while (fits && (at = skip_space(at, end)) < end) {
        fits = buffer->size == before || buffer_add(buffer, " ", 1);
        const uint8_t *done = at;
        for (; at < end && fits; at++) {
            uint8_t kind = KINDS[*at];
            uint32_t code = ' ';
            if (kind == LEAD) decode(at, end, &code);
            if (kind >= BLANK && is_space(code)) break;
            if (kind != SPECIAL || !escapes) continue;
            fits = buffer_add(buffer, done, (size_t)(at - done)) && buffer_add(buffer, "\\", 1);
            done = at;
        }
        fits = fits && buffer_add(buffer, done, (size_t)(at - done));
    }
    return fits;
}

/* Replace what a buffer has from a place on by what a function of Python makes of it. */
static Status replace_from(size_t start, PyObject *function, Buffer *buffer) {
    Py_ssize_t size = (Py_ssize_t)(buffer->size - start);
    buffer->size = start;
    PyObject *text = PyUnicode_DecodeUTF8((char *)buffer->data + start, size, NULL);
    return add_returned(function, text, buffer);
}

/* Add a text escaped; Python escapes what may be a reference to a character. */
static Status add_escaped(const Inline *line, const uint8_t *start, size_t size, Buffer *buffer) {
    size_t before = buffer->size;
    bool is_plain = size == 0 || memchr(start, '&', size) == NULL;
    if (size && !add_words(start, start + size, is_plain, buffer)) return NO_MEMORY;
    return is_plain ? DONE : replace_from(before, line->escape, buffer);
}

/* Add code between backticks that do not occur in it. */
static bool add_code(const uint8_t *code, size_t size, Buffer *buffer) {
    Buffer words = {0};
    bool fits = add_words(code, code + size, false, &words);
    const uint8_t *start = words.data;
    size_t longest = 0, run = 0;
    for (size_t i = 0; i < words.size; i++) {
        run = start[i] == '`' ? run + 1 : 0;
        if (run > longest) longest = run;
    }
    bool spaced = words.size && (start[0] == '`' || start[words.size - 1] == '`');
    for (size_t i = 0; i <= longest && fits; i++) fits = buffer_add(buffer, "`", 1);
    fits = fits && buffer_add(buffer, " ", spaced) && buffer_add(buffer, start, words.size) &&
           buffer_add(buffer, " ", spaced);
    for (size_t i = 0; i <= longest && fits; i++) fits = buffer_add(buffer, "`", 1);
    buffer_free(&words);
    return fits;
}

static bool ends_with_space(const uint8_t *start, size_t size) {
    const uint8_t *end = start + size, *last = end - 1;
    while (last > start && (*last & 0xC0) == 0x80) last--;
    return skip_space(last, end) == end;
}

static bool add_joined(Inline *line, const void *data, size_t size) {
    return buffer_add(&line->starts, &line->joined.size, sizeof(size_t)) &&
           buffer_add(&line->joined, data, size);
}

/* Where what was added last starts. */
static size_t last_start(const Inline *line) {
    return ((size_t *)line->starts.data)[line->starts.size / sizeof(size_t) - 1];
}

static bool ends_with_code(const Inline *line) {
    size_t start = last_start(line);
    return start < line->joined.size && ((uint8_t *)line->joined.data)[start] == '`';
}

/* Whether what comes is directly behind what was added last. */
static bool is_adjacent(const Inline *line) {
    return line->starts.size && !*line->space && line->begun_count == 0;
}

/* Add a text, an image or code behind white space and the marks that began. */
static Status add_content(Inline *line, PartKind kind, const uint8_t *text, size_t size) {
    Buffer *content = &line->content;
    content->size = 0;
    Status status = DONE;
    if (kind == CLOSES && !add_code(text, size, content)) status = NO_MEMORY;
    if (kind == IMAGE && !buffer_add(content, text, size)) status = NO_MEMORY;
    if (kind == TEXT) status = add_escaped(line, text, size, content);
    bool begins_line = *line->space && line->space[1] && line->begun_count == 0;
    if (kind == TEXT && status == DONE && content->size && begins_line)
        status = replace_from(0, line->escape_start, content);
    if (!*line->space && size && skip_space(text, text + size) > text) line->space = " ";
    if (status != DONE || content->size == 0) return status;
    size_t space = line->starts.size ? strlen(line->space) : 0;
    bool fits = buffer_add(&line->joined, line->space, space) &&
                buffer_add(&line->joined, line->begun.data, line->begun.size) &&
                add_joined(line, content->data, content->size);
    line->begun.size = 0;
    line->begun_count = 0;
    line->space = ends_with_space(text, size) ? " " : "";
    return fits ? DONE : NO_MEMORY;
}

/* Begin a mark directly behind the last one. Return whether that goes on instead. */
static bool goes_on(Inline *line, const uint8_t *mark, size_t size, bool *fits) {
    size_t start = last_start(line), last_size = line->joined.size - start;
    const uint8_t *last = (uint8_t *)line->joined.data + start;
    if (last_size == size && memcmp(last, mark, size) == 0) {
        line->joined.size = start;
        line->starts.size -= sizeof start;
        return true;
    }
    if (size == 1 && *mark == '[' && last_size && last[last_size - 1] == '!') {
        line->joined.size--;
        *fits = buffer_add(&line->joined, "\\!", 2);
    }
    return false;
}

static Status join_parts(Inline *line) {
    bool in_code = false, fits = true;
    int32_t marks = 0;
    Status status = DONE;
    for (int32_t place = 0; place < part_count(line) && status == DONE && fits; place++) {
        Part part = *part_at(line, place);
        const uint8_t *data = (uint8_t *)line->text.data + part.start;
        if (part.kind == OPENS || part.kind == CLOSES) {
            marks += part.kind == OPENS ? 1 : -1;
            if (part.kind == OPENS && is_adjacent(line) && goes_on(line, data, part.size, &fits))
                continue;
            if (part.size == 1 && *data == '`') {
                in_code = part.kind == OPENS;
                if (in_code) {
                    line->quoted.size = 0;
                    continue;
                }
                if (is_adjacent(line) && ends_with_code(line)) line->space = " ";
                status = add_content(line, CLOSES, line->quoted.data, line->quoted.size);
            } else if (part.kind == OPENS) {
                fits = fits && buffer_add(&line->begun, data, part.size);
                line->begun_count++;
            } else {
                fits = add_joined(line, data, part.size);
            }
        } else if (in_code) {
            fits = buffer_add(&line->quoted, data, part.size);
        } else if (part.kind == BREAK && marks == 0) {
            line->space = "  \n";
        } else if (part.kind != EMPTY) {
            status = add_content(line, part.kind, data, part.size);
        }
    }
    return fits ? status : NO_MEMORY;
}

Status inline_join(Inline *line) {
    bool has_marks = false;
    for (int32_t place = 0; place < part_count(line) && !has_marks; place++)
        has_marks = part_at(line, place)->kind > TEXT;
    line->joined.size = line->starts.size = line->begun.size = 0;
    line->begun_count = 0;
    line->space = "";
    Status status = has_marks ? join_parts(line)
                              : add_escaped(line, line->text.data, line->text.size, &line->joined);
    line->line++;
    line->parts.size = line->text.size = 0;
    return status;
}

void inline_free(Inline *line) {
    Buffer *buffers[] = {&line->text, &line->parts, &line->open, &line->joined,
                         &line->starts, &line->begun, &line->content, &line->quoted};
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++) buffer_free(buffers[i]);
}
