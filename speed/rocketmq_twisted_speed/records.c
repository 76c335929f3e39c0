/* What a reader of a commit log does with each record, compiled. The plain forms are in storage/columns of rocketmq-twisted, and
   are the truth. A function returns None for all that it does not take. Places and sizes of fields are arguments, derived from
   the declared layouts. Each length is checked before memory is touched, and is that of exact bytes, which nothing changes. */

#define Py_LIMITED_API 0x030B0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <string.h>

enum { BYTE = 1, SHORT = 2, INT = 4, LONG = 8 };

static int64_t get(const uint8_t *at, int bytes)
{
    uint64_t value = at[0] & 0x80 ? ~UINT64_C(0) : 0;
    while (bytes--)
        value = value << 8 | *at++;
    return (int64_t)value;
}

static int view(PyObject *object, const uint8_t **data, Py_ssize_t *size)
{
    if (!PyBytes_CheckExact(object))
        return 0;
    *data = (const uint8_t *)PyBytes_AsString(object);
    *size = PyBytes_Size(object);
    return 1;
}

/* The layout: places in the head, what a head with IPv4 hosts and a record have at least, the versions and the kinds of hosts. */

enum { VERSIONS = 2, KINDS = 4, MOST = 1 << 16 };
typedef struct {
    int32_t size, magic, offset, flags, mask, head, least;
    struct { int32_t magic, topic_bytes; } version[VERSIONS];
    struct { int32_t flags, head, body_length; } kind[KINDS];
} Layout;
static int fits(int place, int bytes, int head)
{
    return place >= 0 && place <= head - bytes;
}

static int is_sound(const Layout *layout)
{
    int head = layout->head, sound = head >= LONG && head <= layout->least && layout->least <= MOST
        && fits(layout->size, INT, head) && fits(layout->magic, INT, head) && fits(layout->flags, INT, head)
        && fits(layout->offset, LONG, head);
    for (int of = 0; of < VERSIONS; of++)
        sound = sound && (layout->version[of].topic_bytes == BYTE || layout->version[of].topic_bytes == SHORT);
    for (int of = 0; of < KINDS; of++)
        sound = sound && layout->kind[of].head >= head && layout->kind[of].head <= MOST
            && fits(layout->kind[of].body_length, INT, layout->kind[of].head);
    return sound;
}

/* Where a record and its parts begin and end, counted from the buffer's start. */

enum { START, BODY, BODY_END, TOPIC, TOPIC_END, PROPERTIES, END, COLUMNS };

/* Read the record at `start`, behind which `left` bytes are, at least layout->least. 0: no whole record of this offset is there. */
static int read_record(const uint8_t *data, Py_ssize_t start, Py_ssize_t left, const Layout *layout, uint64_t offset, int64_t *part)
{
    const uint8_t *record = data + start;
    int64_t size = get(record + layout->size, INT), magic = get(record + layout->magic, INT), place, length;
    int flags = (int)get(record + layout->flags, INT) & layout->mask, version = 0, kind = 0;
    while (version < VERSIONS && layout->version[version].magic != magic)
        version++;
    while (kind < KINDS && layout->kind[kind].flags != flags)
        kind++;
    if (version == VERSIONS || kind == KINDS || size > left || size < layout->kind[kind].head
        || (uint64_t)get(record + layout->offset, LONG) != offset)
        return 0;
    int topic_bytes = layout->version[version].topic_bytes;
    length = get(record + layout->kind[kind].body_length, INT);
    place = layout->kind[kind].head;
    if (length < 0 || length > size - place - topic_bytes)
        return 0;
    part[START] = start, part[BODY] = start + place, part[BODY_END] = start + (place += length);
    length = get(record + place, topic_bytes);
    place += topic_bytes;
    if (length < 0 || length > size - place - SHORT)
        return 0;
    part[TOPIC] = start + place, part[TOPIC_END] = start + (place += length);
    length = get(record + place, SHORT);
    place += SHORT;
    part[PROPERTIES] = start + place, part[END] = start + size;
    return length == size - place;
}

/* walk_records(data, position, end, first_offset, layout): the heads, as with IPv4 hosts, and the columns of parts of the records
   that begin in [position, end), one behind the other, up to the first place without one. The layout is bytes of int32. */
static PyObject *walk_records(PyObject *module, PyObject *args)
{
    PyObject *object, *heads = NULL, *columns = NULL;
    const uint8_t *data;
    const char *numbers;
    Py_ssize_t size, position, end, start, number_bytes, count = 0;
    long long first_offset;
    int64_t part[COLUMNS];
    Layout layout;
    if (!PyArg_ParseTuple(args, "OnnLy#", &object, &position, &end, &first_offset, &numbers, &number_bytes))
        return NULL;
    if (position < 0 || number_bytes != sizeof layout || !view(object, &data, &size))
        Py_RETURN_NONE;
    memcpy(&layout, numbers, sizeof layout);
    if (!is_sound(&layout))
        Py_RETURN_NONE;
    end = end <= size - layout.least ? end : size - layout.least + 1;
    for (start = position; start < end; start = (Py_ssize_t)part[END], count++)
        if (!read_record(data, start, size - start, &layout, (uint64_t)first_offset + (uint64_t)start, part))
            break;
    if (!(heads = PyByteArray_FromStringAndSize(NULL, count * layout.head))
        || !(columns = PyByteArray_FromStringAndSize(NULL, count * (Py_ssize_t)sizeof part))) {
        Py_XDECREF(heads);
        return NULL;
    }
    char *head = PyByteArray_AsString(heads);
    int64_t *row = (int64_t *)PyByteArray_AsString(columns);
    start = position;
    for (Py_ssize_t left = count; left--; start = (Py_ssize_t)part[END], row++, head += layout.head) {
        read_record(data, start, size - start, &layout, (uint64_t)first_offset + (uint64_t)start, part);
        memcpy(head, data + start, layout.head);
        for (int column = 0; column < COLUMNS; column++)
            row[column * count] = part[column];
    }
    return Py_BuildValue("NN", heads, columns);
}

/* CRC-32 as zlib has it, sixteen bytes a step: byte n of a step is looked up in the table of n more zeros behind it. */

enum { STEP = 16 };
static uint32_t crcs[STEP][256];

static int fill_tables(PyObject *module)
{
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t crc = byte;
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320 : 0);
        crcs[0][byte] = crc;
    }
    for (int step = 1; step < STEP; step++)
        for (int byte = 0; byte < 256; byte++)
            crcs[step][byte] = crcs[step - 1][byte] >> 8 ^ crcs[0][crcs[step - 1][byte] & 0xFF];
    return 0;
}

static uint32_t crc32(const uint8_t *at, Py_ssize_t size)
{
    uint32_t crc = 0xFFFFFFFF, next;
    for (; size >= STEP; at += STEP, size -= STEP, crc = next) {
        next = 0;
        for (int byte = 0; byte < STEP; byte++)
            next ^= crcs[STEP - 1 - byte][at[byte] ^ (byte < INT ? crc >> 8 * byte & 0xFF : 0)];
    }
    while (size--)
        crc = crc >> 8 ^ crcs[0][(crc ^ *at++) & 0xFF];
    return ~crc;
}

/* crc32s(data, begins, ends): the CRC-32 of each span, in the machine's byte order; begins and ends are bytes of int64. */
static PyObject *crc32s(PyObject *module, PyObject *args)
{
    PyObject *object, *found;
    const uint8_t *data;
    const char *begins, *ends;
    Py_ssize_t size, bytes, end_bytes;
    int64_t begin, end;
    if (!PyArg_ParseTuple(args, "Oy#y#", &object, &begins, &bytes, &ends, &end_bytes))
        return NULL;
    if (!view(object, &data, &size) || bytes != end_bytes || bytes % LONG)
        Py_RETURN_NONE;
    if (!(found = PyByteArray_FromStringAndSize(NULL, bytes / LONG * INT)))
        return NULL;
    uint32_t *crc = (uint32_t *)PyByteArray_AsString(found);
    for (; bytes; bytes -= LONG, begins += LONG, ends += LONG) {
        memcpy(&begin, begins, LONG), memcpy(&end, ends, LONG);
        if (begin < 0 || end < begin || end > size) {
            Py_DECREF(found);
            Py_RETURN_NONE;
        }
        *crc++ = crc32(data + begin, (Py_ssize_t)(end - begin));
    }
    return found;
}

static PyMethodDef functions[] = {{"walk_records", walk_records, METH_VARARGS, NULL}, {"crc32s", crc32s, METH_VARARGS, NULL}, {0}};
static PyModuleDef_Slot slots[] = {{Py_mod_exec, fill_tables}, {0}};
static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "records", .m_methods = functions, .m_slots = slots};

PyMODINIT_FUNC PyInit_records(void)
{
    return PyModuleDef_Init(&definition);
}
