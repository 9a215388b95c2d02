/* What the steps share: the tables of Python's modules, and one page.
 *
 * The steps follow the Python code of the default scheme, in its order and with its names; each file
 * names its module. Python decides what is right, and one test compares the two bit by bit. No
 * state is global: a page is read by several threads at once, each with its own Page, and without
 * the GIL, so only module.c, tables.c, texts.c, events.c and complex_words.c may call Python.
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
    IS_ROW = 1 << 10, IS_LIST = 1 << 11, IS_FIGURE = 1 << 12, IS_CODE = 1 << 13,
    IS_HEADER_CELL = 1 << 14, IS_CELL_BLOCK = 1 << 15, IS_ASIDE = 1 << 16, IS_MAIN = 1 << 17,
    IS_ARTICLE = 1 << 18,
    TAG_BLOCK = 1 << 20, TAG_NEVER_TEXT = 1 << 21, TAG_EMPTY = 1 << 22, TAG_PLAIN = 1 << 23,
    TAG_CONTAINER = 1 << 24, TAG_LINK = 1 << 25
};
/* What the names of an element mean, as in blocks.py. */
enum {
    NAMED_BESIDE = 1 << 0, NAMED_FOOTER = 1 << 1, NAMED_HEADER = 1 << 2, NAMED_CONTENT = 1 << 3,
    NAMED_OVERLAY = 1 << 4, NAMED_HIDDEN = 1 << 5, NAMED_APART = 1 << 6, NAMED_BELOW = 1 << 7,
    NAMED_NOTE = 1 << 8,
    NAME_SHORT = 1 << 9, NAME_WITH_SHORT = 1 << 10, NAME_STATE = 1 << 11,
    NAME_TOPIC = 1 << 12 /* the last four of single words only */
};
/* The flags of a word, as native.py sets them. */
enum {
    WORD_BEFORE = 1 << 0, WORD_BEHIND = 1 << 1, WORD_PRIVACY = 1 << 2, WORD_PASSING = 1 << 3,
    WORD_AGO = 1 << 4, WORD_NOTE = 1 << 5, WORD_MONTH = 1 << 6, WORD_CONTACT = 1 << 7,
    WORD_LEGAL = 1 << 10, WORD_COPYRIGHT = 1 << 11, WORD_YEAR = 1 << 12, WORD_NUMBER = 1 << 13
};

#define FOLD_SIZE 0x3001
#define FOLD_COMPLEX 0xFFFFFFFFu
#define TAGS_MAX 128
#define SIGNATURE_BITS 128
#define FEATURE_COUNT 37

typedef struct {
    Table tags;                       /* flags of each tag */
    Table block_tags;                 /* numbers of the tags of blocks */
    Table names, hiding;              /* the flags of a name; class names that hide */
    Table words;                      /* flags of a word */
    uint32_t fold[FOLD_SIZE];         /* what a code point folds to: itself, another, ' ', COMPLEX */
    uint8_t letters[256];             /* the same of ASCII letters, and 0 */
    double coefficients[FEATURE_COUNT];
    int64_t sources[SIGNATURE_BITS * (SIGNATURE_BITS + 1)];
    /* Functions that return the words of a run of characters that do not fold alone: of a page, and
     * of a short text. */
    PyObject *split_complex, *split_of_title;
} Tables;

extern const char *const FEATURES[FEATURE_COUNT];

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
/* Get the text that begins at a node, as lxml joins text nodes: in `joined` if they are several. */
bool text_from(Buffer *joined, const Node *first, const uint8_t **text, size_t *size);
static inline bool is_text(const Node *node) {
    return node->type == NODE_TEXT || node->type == NODE_CDATA;
}

/* ---- a page ---- */

/* A block element. Element 0 stands for the page and has the parent -1. */
typedef struct {
    int32_t parent, end;  /* the index of its parent, and behind its last descendant */
    int32_t tag, first;   /* the number of its tag, and of its first name */
    uint32_t flags, names;
} Element;

/* A text of a block; `around` is the number of the element that directly contains it, among those
 * that were entered. */
typedef struct {
    int32_t block, around;
} Piece;

typedef enum { WORD, NUMBER, LISTED, VOLATILE, PASSING } Kind;

typedef struct {
    Arena arena; /* all arrays below */

    /* 1. Outline */
    Buffer elements, owners, text, pieces;
    Buffer entered; /* the number of the element around each that was entered */
    Buffer hidden;  /* the nodes of hidden elements, while they are in the tree */
    Table first_names;

    /* 2. Words. Of tokens: the word's number and the block's. */
    Buffer tokens, token_blocks, token_linked;
    Table vocabulary;
    Buffer flags, hashes, places; /* of distinct words; places: offset and length in the keys */
    Table complex_runs;           /* runs of characters that do not fold alone */
    uint8_t *kinds;               /* of tokens */
    int32_t token_count, sign_count; /* signs of blocks and links are no tokens here */
    int32_t unlinked_count;          /* words outside links that are no numbers */

    /* Of blocks with words: the block's number, its element, and amounts */
    int32_t block_count;
    int32_t *block_places, *block_owners;
    int32_t *rows; /* the row of a table or list that each block is in, or 0 */
    double *counts, *linked, *notices, *legal, *privacy, *numeric;

    /* 3. Weights */
    double *weights;
    uint8_t *shown;   /* of all blocks */
    uint8_t *counted; /* of blocks with words: shown, on a page that is not all boilerplate */

    /* 4. */
    uint64_t structure;
} Page;

static inline Element *elements_of(const Page *page) { return (Element *)page->elements.data; }
static inline int32_t *owners_of(const Page *page) { return (int32_t *)page->owners.data; }
static inline int32_t *tokens_of(const Page *page) { return (int32_t *)page->tokens.data; }
static inline int32_t *token_blocks_of(const Page *page) {
    return (int32_t *)page->token_blocks.data;
}
static inline int32_t *flags_of(const Page *page) { return (int32_t *)page->flags.data; }
static inline uint64_t *hashes_of(const Page *page) { return (uint64_t *)page->hashes.data; }
static inline int32_t element_count(const Page *page) {
    return (int32_t)(page->elements.size / sizeof(Element));
}
static inline int32_t all_block_count(const Page *page) {
    return (int32_t)(page->owners.size / sizeof(int32_t));
}
static inline const Piece *pieces_of(const Page *page) { return (Piece *)page->pieces.data; }
static inline int32_t piece_count(const Page *page) {
    return (int32_t)(page->pieces.size / sizeof(Piece));
}
static inline const int32_t *around_of(const Page *page) { return (int32_t *)page->entered.data; }
static inline int32_t entered_count(const Page *page) {
    return (int32_t)(page->entered.size / sizeof(int32_t));
}
static inline int32_t parent_of(const Element *elements, int32_t element) {
    return elements[element].parent < 0 ? 0 : elements[element].parent;
}
static inline double larger(double a, double b) { return a > b ? a : b; }
static inline double square(double a) { return a * a; }

/* outline.c, names.c */
Status read_outline(Page *page, const Tables *tables, const Node *body);

typedef enum { VISIBLE, HIDDEN, NAME_UNSUPPORTED, NAME_NO_MEMORY } Visibility;
Visibility is_hidden(const Node *element);
Visibility names_of(const Node *element, const Tables *tables, Page *page, uint32_t *names,
                    int32_t *first);

/* words.c, complex_words.c, numbers.c */
#define TOKENS_MAX 500000
/* Tokens that are no words: the fourth sign, one before each date and telephone number, and runs of
 * complex characters until they are split. */
enum { COPYRIGHT_SIGN = -4, DATE_SIGN = -5, FIRST_COMPLEX = -6 };

Status read_words(Page *page, const Tables *tables, bool is_plain);
Status add_word(Page *page, const Tables *tables, const uint8_t *word, size_t length,
                uint32_t hash, bool is_number, int32_t *number);
Status split_complex_runs(Page *page, const Tables *tables, PyObject *split);
Status find_kinds(Page *page);
Status count_words(Page *page);

/* tree.c */
#define LISTED_FROM 0.4 /* dates in tables and lists of such a likelihood are data */
typedef struct {
    double *own, *words, *linked, *notices; /* of elements: own words; words and more in and below */
    double *levels;                       /* LEVELS inherited features of each element */
    bool *in_frame;
    int32_t *note;                        /* the element around a note, or 0 */
    int32_t *group;                       /* similar siblings: the first of them */
    double *run_likelihood, *group_unlinked, *run_words;
    int32_t *run, *table, *row;           /* the innermost ones at or above an element, or 0 */
    double *table_likelihood;
    bool has_table;
    int32_t *depth;
    double *in_table, *in_run, *unit;     /* of blocks */
    double *before_h1, *under_h1, *after_headings, *outside_main, *outside_article;
} Tree;

enum {
    LEVEL_BESIDE_NAMES, LEVEL_BESIDE_TAGS, LEVEL_OVERLAY_NAMES, LEVEL_HIDDEN_NAMES, LEVEL_HEADER,
    LEVEL_CONTENT_NAMES, LEVEL_FOOTER_NAMES, LEVEL_FOOTER_TAG, LEVEL_FRAME, LEVEL_IN_ARTICLE,
    LEVEL_COPYRIGHT_ELEMENT, LEVEL_APART,
    LEVELS
};

Status build_tree(Tree *tree, Page *page, Arena *arena);
bool sum_below(const Page *page, Arena *arena, const double *amounts, double *sums);

/* features.c, weights.c, whole.c */
double *block_features(const Page *page, const Tree *tree, Arena *arena);
bool is_apart(const double *features, int32_t block);
Status weigh(Page *page, const Tables *tables);
Status show_whole_elements(Page *page, const Tree *tree, Arena *arena);

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
    uint8_t signature[SIGNATURE_BITS / 8];
    int32_t features, tokens;
    double unseen;
} Vote;

/* UNSUPPORTED: there is no feature, or no feature has a weight. */
Status vote(const Page *page, const Tables *tables, const Factors *factors, Vote *result);

/* UNSUPPORTED: only Python splits some of its words. */
Status vote_letters(const Page *page, const Tables *tables, Vote *result);

/* events.c */
PyObject *events(PyObject *module, PyObject *arguments);

/* texts.c */
PyObject *vote_texts(PyObject *module, PyObject *arguments);
PyObject *vote_titles(PyObject *module, PyObject *arguments);

/* module.c */
bool read_factors(PyObject *occurrences, Factors *factors);
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
