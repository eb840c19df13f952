/* A pull parser of XML for files of data: elements, attributes and text.
 *
 * It reads the subset that programs write, in bounded memory. A document type, hence every entity but the five of XML
 * itself, is refused; so are encodings other than UTF-8, tags of more than 64 KB and elements within more than 64
 * others. Comments and processing instructions are passed over. Names are compared as they are written, with their
 * prefix.
 */
#ifndef IO_XML_XML_H
#define IO_XML_XML_H

#include "bytes/source.h"

enum { IO_XML_TAG = 1 << 16, IO_XML_DEPTH = 64, IO_XML_NAME = 64, IO_XML_ATTRIBUTES = 64 };

typedef enum io_xml_kind { IO_XML_OPEN, IO_XML_CLOSE, IO_XML_TEXT, IO_XML_END } io_xml_kind;

/* Bytes in the parser's buffer, good until the next call. */
typedef struct io_xml_span {
    const char *text;
    size_t length;
} io_xml_span;

typedef struct io_xml {
    sp_context *context;
    io_source *source;
    char *buffer; /* buffer[at..end) is to be parsed */
    size_t at, end;
    bool ended;     /* the source */
    int64_t line, bytes; /* those before buffer[at] */

    io_xml_kind kind;
    io_xml_span name; /* of an element that opens or closes */
    int depth;        /* elements that are open, with one that closes */
    io_xml_span text; /* a part of the text between two tags, which may come in several; entities are replaced */
    int count;
    io_xml_span keys[IO_XML_ATTRIBUTES], values[IO_XML_ATTRIBUTES];

    bool closes, within; /* <a/>: it closes next; within CDATA */
    bool begun;          /* the root has opened */
    char names[IO_XML_DEPTH][IO_XML_NAME + 1];
} io_xml;

sp_status io_xml_open(sp_context *context, io_source *source, io_xml *xml);
/* The next piece: xml->kind and what belongs to it. IO_XML_END once the root has closed and nothing follows. */
sp_status io_xml_next(io_xml *xml);
void io_xml_close(io_xml *xml);
/* "FILE:LINE: what (got "..."); remedy". */
sp_status io_xml_fail(const io_xml *xml, const char *what, io_xml_span got, const char *remedy);
/* The value of an attribute of the element that opens; its text is NULL if there is none. */
io_xml_span io_xml_attribute(const io_xml *xml, const char *key);
static inline bool io_xml_is(io_xml_span span, const char *word)
{
    return span.length == strlen(word) && memcmp(span.text, word, span.length) == 0;
}

#endif
