/* What the steps share: the tables of Python's modules, and one page.
 *
 * The steps follow the Python code of the default scheme, in its order and with its names; each file
 * names its module. Python decides what is right, and one test compares the two bit by bit. No
 * state is global: a page is read by several threads at once, each with its own Page, and without
 * the GIL, so only module.c, tables.c, texts.c, events.c, inline.c and complex_words.c may
 * call Python.
 */
#ifndef PGSIMHASH_PAGE_H
#define PGSIMHASH_PAGE_H

#ifndef Py_LIMITED_API
#define Py_LIMITED_API 0x030b0000
#endif
/* No format has "#": built with Python 3.13, it would fail in 3.11. */
#include <Python.h>

#include "memory.h"

/* ---- hashes.h has MurmurHash3; characters.h has UTF-8 ---- */

/* ---- tables.c: the lists, patterns and coefficients of Python's modules ---- */

/* The flags of a tag, as native.py sets them. */
enum {
    IS_BESIDE = 1 << 0, IS_FOOTER = 1 << 1, IS_HEADER = 1 << 2, IS_CONTENT = 1 << 3,
    IS_H1 = 1 << 4, IS_HEADING = 1 << 5, IS_COMMON = 1 << 6, IS_PARAGRAPH = 1 << 7,
    IS_CELL = 1 << 8, IS_TABLE = 1 << 9,
    IS_ROW = 1 << 10, IS_WHOLE = 1 << 11, IS_FIGURE = 1 << 12, IS_CODE = 1 << 13,
    IS_HEADER_CELL = 1 << 14, IS_CELL_BLOCK = 1 << 15, IS_ASIDE = 1 << 16, IS_MAIN = 1 << 17,
    IS_ARTICLE = 1 << 18, IS_TITLE = 1 << 19,
    TAG_BLOCK = 1 << 20, TAG_NEVER_TEXT = 1 << 21, TAG_EMPTY = 1 << 22, TAG_CONTAINER = 1 << 23,
    TAG_LINK = 1 << 24,
    EVENT_ELEMENT = 1 << 25, EVENT_BLOCK = 1 << 26, EVENT_PLAIN = 1 << 27, EVENT_INLINE = 1 << 28,
    IS_QUOTATION = 1 << 29
};
/* What the names of an element mean, as in blocks.py. */
enum {
    NAMED_BESIDE = 1 << 0, NAMED_FOOTER = 1 << 1, NAMED_HEADER = 1 << 2, NAMED_CONTENT = 1 << 3,
    NAMED_OVERLAY = 1 << 4, NAMED_HIDDEN = 1 << 5, NAMED_APART = 1 << 6, NAMED_BELOW = 1 << 7,
    NAMED_NOTE = 1 << 8, NAMED_TEASER = 1 << 9,
    NAME_SHORT = 1 << 10, NAME_WITH_SHORT = 1 << 11, NAME_STATE = 1 << 12,
    NAME_TOPIC = 1 << 13 /* the last four of single words only */
};
/* The flags of a word, as native.py sets them. */
enum {
    WORD_BEFORE = 1 << 0, WORD_BEHIND = 1 << 1, WORD_PRIVACY = 1 << 2, WORD_PASSING = 1 << 3,
    WORD_AGO = 1 << 4, WORD_NOTE = 1 << 5, WORD_MONTH = 1 << 6, WORD_CONTACT = 1 << 7,
    WORD_LEGAL = 1 << 10, WORD_COPYRIGHT = 1 << 11, WORD_YEAR = 1 << 12, WORD_NUMBER = 1 << 13
};

#define FEATURE(name, value) name,
enum {
#include "feature_list.h"
    FEATURE_COUNT
};
#undef FEATURE
/* The features that an element inherits: two have no coefficient. */
enum { FRAME = OUTSIDE_MAIN, IN_ARTICLE, LEVELS };

#define FOLD_SIZE 0x3001
#define FOLD_COMPLEX 0xFFFFFFFFu
#define TAGS_MAX 128
#define BIN_BITS 6
#define BINS (1 << BIN_BITS)

typedef struct {
    Table tags;                       /* flags of each tag */
    Table block_tags;                 /* numbers of the tags of blocks */
    Table names, hiding;              /* the flags of a name; class names that hide */
    Table words;                      /* flags of a word */
    uint32_t fold[FOLD_SIZE];         /* the UTF-8 of what a code point folds to; or COMPLEX */
    double coefficients[FEATURE_COUNT];
    int64_t sources[BINS * (BINS + 1)];
    /* Functions that return the words of a run of characters that do not fold alone: of a page, and
     * of a short text. */
    PyObject *split_complex, *split_of_title;
} Tables;

PyObject *make_tables(PyObject *module, PyObject *arguments);
Tables *tables_of(PyObject *capsule);

/* ---- nodes.c: the tree of libxml2 ---- */

/* The heads of libxml2's xmlNode and xmlAttr, the same in all versions 2. */
typedef struct Node {
    void *private_data;
    int type;
    const unsigned char *name;
    struct Node *children, *last, *parent, *next, *prev;
    void *document, *namespace_;
    unsigned char *content;    /* of texts; in an xmlAttr something else */
    struct Node *properties;   /* of elements: the first attribute */
} Node;

enum {
    NODE_ELEMENT = 1, NODE_TEXT = 3, NODE_CDATA = 4, NODE_ENTITY = 5, NODE_INSTRUCTION = 7,
    NODE_COMMENT = 8, NODE_XINCLUDE_START = 19, NODE_XINCLUDE_END = 20
};

/* The first element from `node` on among siblings, or NULL; sets `is_unsupported` for nodes that the
 * parser is told to omit. */
const Node *element_from(const Node *node, bool *is_unsupported);
/* The value of an attribute, or NULL if it is not one text. */
const uint8_t *attribute_value(const Node *attribute);
/* What is known of a tag, and the number of a block's. libxml2 keeps each name once, so the last
 * ones are found by address. */
#define TAGS_KEPT 64
typedef struct {
    const unsigned char *name;
    uint32_t flags;
    int32_t number;
} Tag;
const Tag *tag_of(Tag *kept, const Tables *tables, const Node *node);
/* Walk through the elements and texts of a body, without recursion, because pages may be deep.
 * `begin` returns HIDDEN for an element that is skipped. */
typedef Status Step(void *walk, const Node *node);
typedef Status AddText(void *walk, const uint8_t *text, const uint8_t *end);
Status walk_through(const Node *body, Step *begin, Step *end, AddText *add_text, void *walk);
static inline bool is_text(const Node *node) {
    return node->type == NODE_TEXT || node->type == NODE_CDATA;
}

/* ---- a page ---- */

/* Siblings with the same tag and first name: how many have words, and their words. */
typedef struct {
    double filled, words, unlinked;
} Siblings;

/* How many elements of these tags are in a table, but not in one inside it. */
typedef struct {
    int32_t tables, rows, cells, header_cells, cell_blocks;
} Inside;

/* A block element, with the values of Element of blocks.py. Element 0 stands for the page, and is
 * its own parent. */
typedef struct {
    int32_t parent, end; /* the index of its parent, and behind its last descendant */
    int32_t tag, first;  /* the number of its tag, and of its first name */
    uint32_t flags, names;
    double own, words, linked, notices, prose, run_words, mass, seen;
    int32_t depth, run, table, row, note;
    int32_t start, stop; /* its blocks; equal, if it has none */
    int32_t larger;      /* the nearest element around it that holds more blocks */
    int32_t in_frame;
    Inside inside;
    Siblings *siblings;
    double levels[LEVELS];
} Element;

/* A text of a block; `around` is the number of the element that directly contains it, among those
 * that were entered. */
typedef struct {
    int32_t block, around;
} Piece;

typedef enum { WORD, NUMBER, LISTED, VOLATILE, PASSING } Kind;

/* A word of a block, or a sign, which is below 0. */
typedef struct {
    int32_t word, block;
    bool is_linked;
    uint8_t kind;
} Token;

/* A distinct word; its letters are keys of the vocabulary. */
typedef struct {
    uint64_t hash;
    uint32_t offset, length;
    int32_t flags;
} Word;

/* A text block with words, with the values of TextBlock of page_words.py. */
typedef struct {
    int32_t place, owner; /* its number among all blocks; its element */
    int32_t row;
    bool has_notice, has_privacy, is_apart;
    bool counted; /* shown, on a page that is not all boilerplate */
    double weight, level, words, linked, letters, numbers, legal, in_table, in_run, unit;
    double before_h1, under_h1, after_headings, outside_main, outside_article;
    double middle, lateness, notice, repeated; /* the middle in words, and features by it */
} Block;

typedef struct {
    PyThreadState *thread; /* without the GIL */
    Arena arena;           /* all arrays below */

    /* 1. Outline */
    Buffer elements; /* Element */
    Buffer owners;   /* of all text blocks, int32_t */
    Buffer text;
    Buffer pieces;  /* Piece */
    Buffer entered; /* the number of the element around each that was entered, int32_t */
    Buffer hidden;  /* the nodes of hidden elements, while they are in the tree */
    Table first_names;

    /* 2. Words */
    Buffer tokens; /* Token */
    Buffer words;  /* Word */
    Table vocabulary;
    Table complex_runs;     /* runs of characters that do not fold alone */
    int32_t sign_count;     /* signs of blocks and links, which are no tokens here */
    int32_t unlinked_count; /* words outside links that are no numbers */
    Block *blocks;
    int32_t block_count;

    /* 3. Weights */
    uint8_t *shown; /* of all blocks */
    bool is_title_apart; /* whether a block of an h1 is */

    /* 4. */
    uint64_t structure;
} Page;

static inline int32_t element_count(const Page *page) {
    return (int32_t)(page->elements.size / sizeof(Element));
}
static inline int32_t all_block_count(const Page *page) {
    return (int32_t)(page->owners.size / sizeof(int32_t));
}
static inline int32_t token_count(const Page *page) {
    return (int32_t)(page->tokens.size / sizeof(Token));
}
static inline int32_t piece_count(const Page *page) {
    return (int32_t)(page->pieces.size / sizeof(Piece));
}
static inline int32_t entered_count(const Page *page) {
    return (int32_t)(page->entered.size / sizeof(int32_t));
}
/* Whether an element is this one or below it. */
static inline bool holds(const Element *elements, int32_t around, int32_t element) {
    return around <= element && element < elements[around].end;
}
#define LISTED_FROM 0.4
/* Whether dates in the table or list of a block are data. */
static inline bool is_listed(const Block *block) {
    return block->in_table > LISTED_FROM || block->in_run > LISTED_FROM;
}
static inline double larger(double a, double b) { return a > b ? a : b; }
static inline double square(double a) { return a * a; }

/* outline.c, names.c */
Status read_outline(Page *page, const Tables *tables, const Node *body);

/* HIDDEN: its attributes hide the element. */
Status is_hidden(const Node *element);
Status names_of(const Node *element, const Tables *tables, Page *page, uint32_t *names,
                int32_t *first);

/* words.c, complex_words.c, numbers.c */
#define TOKENS_MAX 500000
/* Tokens that are no words: the fourth sign, one before each date and telephone number, and runs of
 * complex characters until they are split. */
enum { COPYRIGHT_SIGN = -4, DATE_SIGN = -5, FIRST_COMPLEX = -6 };

/* Of a short text, without blocks and kinds. */
Status read_words(Page *page, const Tables *tables, bool is_title);
Status add_word(Page *page, const Tables *tables, const uint8_t *word, size_t length,
                uint32_t hash, bool is_number, int32_t *number);
Status split_complex_runs(Page *page, const Tables *tables, PyObject *split);
void find_kinds(Page *page);

/* tree.c, features.c, weights.c, whole.c */
Status look_around(Page *page, Arena *arena);
Status find_levels(Page *page, const Tables *tables, Arena *arena);
Status weigh(Page *page, const Tables *tables);
/* The number of the nearest element around one that has more words, or 0. */
int32_t larger_around(const Element *elements, const Element *element);
double table_likelihood(const Element *table);
/* Find the blocks of each element, which are consecutive, and the nearest one around with more. */
void find_blocks_of_elements(Page *page);
bool show_whole_elements(Page *page, Arena *arena);

/* structure.c */
Status structure_simhash(Page *page, const Tables *tables);

/* votes.c */
#define OCCURRENCES 8
typedef struct {
    double occurrences[OCCURRENCES]; /* OCCURRENCES of features.py */
    double damping, evened;
} Factors;
typedef struct {
    uint64_t simhash, digest;
    uint8_t signature[16]; /* the lowest byte first */
    int32_t features, tokens;
    double unseen;
} Vote;

/* Without factors, letters vote. UNSUPPORTED: there is no feature, or no feature has a weight. */
Status vote(const Page *page, const Tables *tables, const Factors *factors, Vote *result);

/* events.c */
PyObject *events(PyObject *module, PyObject *arguments);

/* texts.c */
PyObject *vote_texts(PyObject *module, PyObject *arguments);

/* module.c */
bool read_factors(PyObject *tuple, Factors *factors);
/* (simhash, signature, features, tokens, digest, unseen) */
PyObject *vote_tuple(const Vote *vote);
Page *page_of(PyObject *capsule);
void free_page(Page *page);
/* The Python result of a step that did not end with DONE. */
PyObject *refusal(Status status);
/* lxml's element of a node in the document of another element. */
PyObject *element_of(PyObject *module, PyObject *of_document, const Node *node);
/* The node of an element of lxml, or NULL with an exception. */
const Node *node_of(PyObject *module, PyObject *element);

/* clean.c */
PyObject *is_clean(PyObject *module, PyObject *bytes);
PyObject *odd_tags(PyObject *module, PyObject *bytes);

/* pairs.c */
PyObject *group(PyObject *module, PyObject *arguments);
PyObject *near_pairs(PyObject *module, PyObject *arguments);

#endif
