/* The pull parser of XML. */
#include <string.h>

#include "base/try.h"
#include "bytes/memory.h"
#include "bytes/message.h"
#include "xml/xml.h"

enum { WINDOW = 2 * IO_XML_TAG, LONGEST_ENTITY = 16 };

static const char NOT_WHOLE[] = "the file is not whole, or no XML";

static bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

static bool ends_name(char c)
{
    return is_space(c) || c == '/' || c == '>' || c == '=' || c == '<' || c == '"' || c == '\'';
}

sp_status io_xml_fail(const io_xml *xml, const char *what, io_xml_span got, const char *remedy)
{
    const char *text = got.text ? got.text : "", *from = xml->buffer + xml->at;
    int64_t line = xml->line; /* of the next byte */
    if (text > from && text <= xml->buffer + xml->end)
        for (; from < text; from++) line += *from == '\n';
    return io_fail_line(xml->context, io_source_name(xml->source), line, what, text, text + got.length, remedy);
}

static sp_status fail_at(const io_xml *xml, const char *what, const char *remedy)
{
    const size_t left = xml->end - xml->at;
    return io_xml_fail(xml, what, (io_xml_span){xml->buffer + xml->at, left < IO_TOKEN_SHOWN ? left : IO_TOKEN_SHOWN},
                       remedy);
}

/* ---- bytes ---------------------------------------------------------------------------------------------- */

/* Fills the buffer behind its rest. */
static sp_status refill(io_xml *xml)
{
    size_t got;
    memmove(xml->buffer, xml->buffer + xml->at, xml->end - xml->at);
    xml->end -= xml->at;
    xml->at = 0;
    if (xml->ended) return SP_OK;
    const size_t room = WINDOW - xml->end;
    const sp_status status = io_source_read(xml->source, xml->buffer + xml->end, room, &got);
    xml->end += got;
    xml->ended = got < room;
    xml->buffer[xml->end] = '\0'; /* ends whatever is parsed */
    return status;
}

/* Makes `count` bytes available, fewer at the end of the source. */
static sp_status want(io_xml *xml, size_t count)
{
    return xml->end - xml->at >= count || xml->ended ? SP_OK : refill(xml);
}

static void take(io_xml *xml, size_t count, int64_t lines)
{
    xml->line += lines;
    xml->at += count;
    xml->bytes += (int64_t)count;
}

static void skip(io_xml *xml, size_t count)
{
    int64_t lines = 0;
    for (size_t i = 0; i < count; i++) lines += xml->buffer[xml->at + i] == '\n';
    take(xml, count, lines);
}

static bool begins(const io_xml *xml, const char *word)
{
    const size_t length = strlen(word);
    return xml->end - xml->at >= length && memcmp(xml->buffer + xml->at, word, length) == 0;
}

/* The first `word` within count bytes, NULL if there is none. */
static const char *find(const char *text, size_t count, const char *word)
{
    return memmem(text, count, word, strlen(word));
}

/* Passes over what ends with `word`, of any length. */
static sp_status skip_through(io_xml *xml, const char *word)
{
    const size_t length = strlen(word);
    for (;;) {
        sp_status status = want(xml, length);
        if (status != SP_OK) return status;
        const size_t left = xml->end - xml->at;
        const char *begin = xml->buffer + xml->at, *stop = find(begin, left, word);
        if (stop) {
            skip(xml, (size_t)(stop - begin) + length);
            return SP_OK;
        }
        if (left < length) return fail_at(xml, "the file ends too soon", NOT_WHOLE);
        skip(xml, left - length + 1); /* the rest may be the beginning of the word */
    }
}

/* ---- entities ------------------------------------------------------------------------------------------- */

/* The character of "#65" or "#x41"; 0 for none that XML has. */
static uint32_t read_character(const char *text, size_t length)
{
    const bool hexadecimal = length > 1 && text[1] == 'x';
    const uint32_t base = hexadecimal ? 16 : 10;
    uint32_t c = 0;
    size_t i = hexadecimal ? 2 : 1;
    if (i == length) return 0;
    for (; i < length && c <= 0x10ffff; i++) {
        const char digit = text[i];
        uint32_t value = base;
        if (digit >= '0' && digit <= '9') value = (uint32_t)(digit - '0');
        else if (digit >= 'a' && digit <= 'f') value = (uint32_t)(digit - 'a') + 10;
        else if (digit >= 'A' && digit <= 'F') value = (uint32_t)(digit - 'A') + 10;
        if (value >= base) return 0;
        c = base * c + value;
    }
    const bool control = c < ' ' && c != '\t' && c != '\n' && c != '\r';
    return control || (c >= 0xd800 && c < 0xe000) || c > 0x10ffff ? 0 : c;
}

/* Replaces entities in place; *length shrinks. */
static sp_status replace_entities(const io_xml *xml, char *text, size_t *length)
{
    static const char *const names[] = {"amp", "lt", "gt", "quot", "apos"};
    char *at = memchr(text, '&', *length), *to = at;
    const char *end = text + *length;
    while (at && at < end) {
        if (*at != '&') {
            *to++ = *at++;
            continue;
        }
        const char *stop = memchr(at, ';', (size_t)(end - at));
        const size_t size = stop ? (size_t)(stop - at) - 1 : 0;
        uint32_t c = size > 0 && size < LONGEST_ENTITY && at[1] == '#' ? read_character(at + 1, size) : 0;
        for (int i = 0; i < 5 && c == 0; i++)
            if (size == strlen(names[i]) && memcmp(at + 1, names[i], size) == 0) c = (uint32_t)"&<>\"'"[i];
        if (c == 0)
            return io_xml_fail(xml, "an entity that is not of XML itself", (io_xml_span){at, stop ? size + 2 : 1},
                               "write the text that it stands for, and & as &amp;");
        to += io_put_utf8(to, c);
        at = (char *)stop + 1;
    }
    if (at) *length = (size_t)(to - text);
    return SP_OK;
}

static sp_status check_characters(const io_xml *xml, const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)text[i] < ' ' && !is_space(text[i]))
            return io_xml_fail(xml, "a control character", (io_xml_span){text + i, 1}, "XML has none; remove it");
    return SP_OK;
}

/* ---- tags ----------------------------------------------------------------------------------------------- */

/* The end of the tag at the beginning of the buffer, the > outside of quotes. */
static sp_status find_tag_end(io_xml *xml, size_t *length)
{
    sp_status status = want(xml, IO_XML_TAG);
    if (status != SP_OK) return status;
    const char *begin = xml->buffer + xml->at;
    const size_t left = xml->end - xml->at < IO_XML_TAG ? xml->end - xml->at : IO_XML_TAG;
    char quote = 0;
    for (size_t i = 1; i < left; i++) {
        const char c = begin[i];
        if (quote) quote = c == quote ? 0 : quote;
        else if (c == '"' || c == '\'') quote = c;
        else if (c == '>') {
            *length = i + 1;
            return check_characters(xml, begin, i + 1);
        }
    }
    return left == IO_XML_TAG ? fail_at(xml, "a tag of more than 65536 bytes", NOT_WHOLE)
                              : fail_at(xml, "a tag that does not end", NOT_WHOLE);
}

static sp_status bad_tag(const io_xml *xml)
{
    return fail_at(xml, "a tag that is no XML", "NAME KEY=\"VALUE\" makes one");
}

static io_xml_span take_name(char **at)
{
    char *begin = *at;
    while (!ends_name(**at)) ++*at;
    return (io_xml_span){begin, (size_t)(*at - begin)};
}

static char *skip_space(char *at)
{
    while (is_space(*at)) at++;
    return at;
}

/* KEY="VALUE" KEY="VALUE" up to `end`. */
static sp_status take_attributes(io_xml *xml, char *at, const char *end)
{
    sp_status status;
    xml->count = 0;
    while ((at = skip_space(at)) < end) {
        if (xml->count == IO_XML_ATTRIBUTES) return fail_at(xml, "more than 64 attributes", "leave some out");
        const io_xml_span key = take_name(&at);
        at = skip_space(at);
        if (key.length == 0 || *at != '=') return bad_tag(xml);
        at = skip_space(at + 1);
        const char quote = *at;
        if (at >= end || (quote != '"' && quote != '\'')) return bad_tag(xml);
        char *value = at + 1, *stop = memchr(value, quote, (size_t)(end - value));
        if (!stop || memchr(value, '<', (size_t)(stop - value))) return bad_tag(xml);
        size_t length = (size_t)(stop - value);
        status = replace_entities(xml, value, &length);
        if (status != SP_OK) return status;
        for (int i = 0; i < xml->count; i++)
            if (xml->keys[i].length == key.length && memcmp(xml->keys[i].text, key.text, key.length) == 0)
                return io_xml_fail(xml, "an attribute that is there twice", key, "leave one out");
        xml->keys[xml->count] = key;
        xml->values[xml->count++] = (io_xml_span){value, length};
        at = stop + 1;
        if (at < end && !is_space(*at)) return bad_tag(xml);
    }
    return SP_OK;
}

static sp_status open_element(io_xml *xml, size_t length)
{
    char *begin = xml->buffer + xml->at, *at = begin + 1, *end = begin + length - 1;
    xml->closes = end[-1] == '/';
    if (xml->closes) end--;
    xml->name = take_name(&at);
    if (at > end) return bad_tag(xml);
    if (xml->depth == 0 && xml->begun)
        return fail_at(xml, "a second root", "an XML file has one element that holds all");
    if (xml->name.length == 0 || xml->name.length > IO_XML_NAME)
        return fail_at(xml, "an element without a name, or with one of more than 64 bytes", NOT_WHOLE);
    if (xml->depth == IO_XML_DEPTH) return fail_at(xml, "elements within more than 64 others", "remove the innermost");
    sp_status status = take_attributes(xml, at, end);
    if (status != SP_OK) return status;
    memcpy(xml->names[xml->depth], xml->name.text, xml->name.length);
    xml->names[xml->depth++][xml->name.length] = '\0';
    xml->begun = true;
    xml->kind = IO_XML_OPEN;
    return SP_OK;
}

static sp_status close_element(io_xml *xml, size_t length)
{
    char *at = xml->buffer + xml->at + 2;
    const char *end = xml->buffer + xml->at + length - 1;
    xml->name = take_name(&at);
    if (skip_space(at) != end) return bad_tag(xml);
    if (xml->depth == 0 || !io_xml_is(xml->name, xml->names[xml->depth - 1]))
        return io_xml_fail(xml, "an element closes that is not the one open", xml->name, NOT_WHOLE);
    xml->kind = IO_XML_CLOSE;
    return SP_OK;
}

/* ---- what is no element --------------------------------------------------------------------------------- */

/* <?xml version="1.0" encoding="UTF-8"?> and other instructions. */
static sp_status skip_instruction(io_xml *xml)
{
    static const char *const encodings[] = {"UTF-8", "utf-8", "US-ASCII", "us-ascii", "ASCII", "ascii"};
    sp_status status = want(xml, IO_XML_TAG);
    if (status != SP_OK) return status;
    const char *begin = xml->buffer + xml->at, *stop = find(begin, xml->end - xml->at, "?>");
    const char *encoding = begins(xml, "<?xml ") && stop ? find(begin, (size_t)(stop - begin), "encoding=") : NULL;
    if (encoding) {
        const char *name = encoding + strlen("encoding=") + 1, quote = name[-1];
        bool known = false;
        for (size_t i = 0; i < sizeof encodings / sizeof *encodings; i++) {
            const size_t length = strlen(encodings[i]);
            known = known || (strncmp(name, encodings[i], length) == 0 && name[length] == quote);
        }
        if (!known) return fail_at(xml, "an encoding other than UTF-8", "convert the file with iconv");
    }
    return skip_through(xml, "?>");
}

static sp_status check_outside(const io_xml *xml, const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (!is_space(text[i]))
            return io_xml_fail(xml, "text outside of all elements", (io_xml_span){text + i, length - i}, NOT_WHOLE);
    return SP_OK;
}

/* Text up to the next tag, or as much as the buffer has, but no part of an entity. */
static sp_status take_text(io_xml *xml)
{
    sp_status status = want(xml, IO_XML_TAG);
    if (status != SP_OK) return status;
    char *begin = xml->buffer + xml->at;
    size_t length = xml->end - xml->at;
    const char *stop = xml->within ? find(begin, length, "]]>") : memchr(begin, '<', length);
    if (stop) length = (size_t)(stop - begin);
    else if (!xml->ended && !xml->within && length > LONGEST_ENTITY)
        for (size_t i = length - LONGEST_ENTITY; i < length; i++) length = begin[i] == '&' ? i : length;
    else if (xml->within && length > 2) length -= 2;
    status = check_characters(xml, begin, length);
    if (status == SP_OK && xml->depth == 0) status = check_outside(xml, begin, length);
    if (status != SP_OK) return status;
    const size_t taken = length;
    int64_t lines = 0;
    for (size_t i = 0; i < taken; i++) lines += begin[i] == '\n';
    if (!xml->within) status = replace_entities(xml, begin, &length);
    if (status != SP_OK) return status;
    xml->kind = IO_XML_TEXT;
    xml->text = (io_xml_span){begin, length};
    take(xml, taken, lines);
    return SP_OK;
}

/* ---- the whole ------------------------------------------------------------------------------------------ */

sp_status io_xml_open(sp_context *context, io_source *source, io_xml *xml)
{
    memset(xml, 0, sizeof *xml);
    xml->context = context;
    xml->source = source;
    xml->line = 1;
    return sp_alloc(context, WINDOW + 1, 1, (void **)&xml->buffer);
}

void io_xml_close(io_xml *xml)
{
    if (xml->context) sp_free(xml->context, xml->buffer);
    xml->buffer = NULL;
}

/* A tag; its names and values stay in the buffer. */
static sp_status take_tag(io_xml *xml)
{
    size_t length = 0;
    sp_status status = find_tag_end(xml, &length);
    if (status != SP_OK) return status;
    int64_t lines = 0; /* counted before entities are replaced */
    for (size_t i = 0; i < length; i++) lines += xml->buffer[xml->at + i] == '\n';
    status = xml->buffer[xml->at + 1] == '/' ? close_element(xml, length) : open_element(xml, length);
    if (status == SP_OK) take(xml, length, lines);
    return status;
}

static sp_status take_end(io_xml *xml)
{
    xml->kind = IO_XML_END;
    if (xml->depth > 0) return fail_at(xml, "the file ends within an element", NOT_WHOLE);
    return xml->begun ? SP_OK : fail_at(xml, "no element", NOT_WHOLE);
}

sp_status io_xml_next(io_xml *xml)
{
    if (xml->closes) { /* the name is still there */
        xml->closes = false;
        xml->kind = IO_XML_CLOSE;
        return SP_OK;
    }
    if (xml->buffer && xml->kind == IO_XML_CLOSE && xml->depth > 0) xml->depth--;
    for (xml->text.length = 0;;) {
        sp_status status = want(xml, LONGEST_ENTITY);
        if (status != SP_OK) return status;
        if (xml->within && begins(xml, "]]>")) {
            skip(xml, 3);
            xml->within = false;
            continue;
        }
        if (xml->end == xml->at) return xml->within ? fail_at(xml, "the file ends too soon", NOT_WHOLE) : take_end(xml);
        if (xml->within || xml->buffer[xml->at] != '<') return take_text(xml);
        if (begins(xml, "<!--")) status = skip_through(xml, "-->");
        else if (begins(xml, "<?")) status = skip_instruction(xml);
        else if (begins(xml, "<![CDATA[") && xml->depth > 0) {
            skip(xml, strlen("<![CDATA["));
            xml->within = true;
        } else if (begins(xml, "<!"))
            return fail_at(xml, "a document type, or another declaration", "remove it: only elements are read");
        else return take_tag(xml);
        if (status != SP_OK) return status;
    }
}

io_xml_span io_xml_attribute(const io_xml *xml, const char *key)
{
    for (int i = 0; i < xml->count; i++)
        if (io_xml_is(xml->keys[i], key)) return xml->values[i];
    return (io_xml_span){NULL, 0};
}
