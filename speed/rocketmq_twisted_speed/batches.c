/* What a broker does with each message of a batch, compiled. The plain forms are in protocol/layouts of rocketmq-twisted, and
   are the truth. A function returns None for all that it does not take: the plain form takes or refuses it. Places of fields are
   arguments, derived from the declared layouts. Each length is checked before memory is touched, and is that of exact bytes in a
   tuple, which nothing changes between check and use. */

#define Py_LIMITED_API 0x030B0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <string.h>

enum { SHORT = 2, INT = 4, LONG = 8 };

static int32_t get_int(const uint8_t *at)
{
    return (int32_t)((uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3]);
}

static void put(uint8_t *at, uint64_t value, int bytes)
{
    for (; bytes--; value >>= 8)
        at[bytes] = (uint8_t)value;
}

static uint8_t *copy(uint8_t *to, const uint8_t *from, Py_ssize_t size)
{
    memcpy(to, from, size);
    return to + size;
}

static int view(PyObject *object, const uint8_t **data, Py_ssize_t *size)
{
    if (!PyBytes_CheckExact(object))
        return 0;
    *data = (const uint8_t *)PyBytes_AsString(object);
    *size = PyBytes_Size(object);
    return 1;
}

/* An entry of a batch: the places of its parts. 0: it is longer than what is left of the batch. */

typedef struct { Py_ssize_t body, body_bytes, properties, properties_bytes, end; } Entry;

static int read_entry(const uint8_t *data, Py_ssize_t size, Py_ssize_t begin, Py_ssize_t head, int length_at, Entry *entry)
{
    Py_ssize_t left = size - begin - head - SHORT;
    if (left < 0)
        return 0;
    entry->body = begin + head;
    entry->body_bytes = get_int(data + begin + length_at);
    if (entry->body_bytes < 0 || entry->body_bytes > left)
        return 0;
    entry->properties = entry->body + entry->body_bytes + SHORT;
    const uint8_t *length = data + entry->properties - SHORT;
    entry->properties_bytes = (int16_t)(length[0] << 8 | length[1]);
    entry->end = entry->properties + entry->properties_bytes;
    return entry->properties_bytes >= 0 && entry->end <= size;
}

/* read_columns(data, (flag, body_length, head)): flags, bodies and properties, and whether their lengths are alike. */
static PyObject *read_columns(PyObject *module, PyObject *args)
{
    PyObject *object;
    const uint8_t *data;
    Py_ssize_t size, begin, count = 0;
    int flag_at, length_at, head, alike = 1;
    Entry entry, first = {0};
    if (!PyArg_ParseTuple(args, "O(iii)", &object, &flag_at, &length_at, &head))
        return NULL;
    if (flag_at < 0 || length_at < 0 || head < INT || flag_at > head - INT || length_at > head - INT
        || !view(object, &data, &size) || !size)
        Py_RETURN_NONE;
    for (begin = 0; begin < size; begin = entry.end, count++) {
        if (!read_entry(data, size, begin, head, length_at, &entry))
            Py_RETURN_NONE;
        first = count ? first : entry;
        alike &= entry.body_bytes == first.body_bytes && entry.properties_bytes == first.properties_bytes;
    }
    PyObject *flags = PyTuple_New(count), *bodies = PyTuple_New(count), *properties = PyTuple_New(count);
    int made = flags && bodies && properties;
    for (begin = count = 0; made && begin < size; begin = entry.end, count++) {
        read_entry(data, size, begin, head, length_at, &entry);
        PyObject *flag = PyLong_FromLong(get_int(data + begin + flag_at));
        PyObject *body = PyBytes_FromStringAndSize((const char *)data + entry.body, entry.body_bytes);
        PyObject *text = PyBytes_FromStringAndSize((const char *)data + entry.properties, entry.properties_bytes);
        PyTuple_SetItem(flags, count, flag);
        PyTuple_SetItem(bodies, count, body);
        PyTuple_SetItem(properties, count, text);
        made = flag && body && text;
    }
    if (made)
        return Py_BuildValue("NNNO", flags, bodies, properties, alike ? Py_True : Py_False);
    Py_XDECREF(flags), Py_XDECREF(bodies), Py_XDECREF(properties);
    return NULL;
}

/* A message of the columns of flags, CRCs, bodies and properties; `rest` is what its record has besides. 0: it has no record. */

typedef struct { const uint8_t *body, *text; Py_ssize_t body_bytes, text_bytes, size; long flag; unsigned long crc; } Message;

static int read_message(PyObject **columns, Py_ssize_t place, Py_ssize_t rest, Py_ssize_t suffix, Message *message)
{
    message->flag = PyLong_AsLong(PyTuple_GetItem(columns[0], place));
    message->crc = PyLong_AsUnsignedLongMask(PyTuple_GetItem(columns[1], place));
    if (PyErr_Occurred()) {
        PyErr_Clear();
        return 0;
    }
    if (!view(PyTuple_GetItem(columns[2], place), &message->body, &message->body_bytes)
        || !view(PyTuple_GetItem(columns[3], place), &message->text, &message->text_bytes))
        return 0;
    message->size = rest + message->body_bytes + message->text_bytes;
    return message->flag == (int32_t)message->flag && message->text_bytes <= INT16_MAX - suffix
        && message->body_bytes <= INT32_MAX - rest - message->text_bytes;
}

/* encode_records(pattern, flags, crcs, bodies, properties, queue_offset, physical_offset, places): the records and their sizes.
   The pattern is the record of an empty message: head, what is between body and properties, the end of all properties. */
enum { SIZE, CRC, FLAG, BODY_LENGTH, QUEUE_OFFSET, PHYSICAL_OFFSET, HEAD, PROPERTIES_LENGTH, BETWEEN, PLACES };

static PyObject *encode_records(PyObject *module, PyObject *args)
{
    PyObject *columns[4], *places, *number, *records = NULL, *sizes = NULL;
    const uint8_t *pattern;
    Py_ssize_t rest, suffix, count, place, total = 0;
    long long queue_offset, physical_offset;
    int at[PLACES];
    Message message;
    if (!PyArg_ParseTuple(args, "y#O!O!O!O!LLO!", &pattern, &rest, &PyTuple_Type, &columns[0], &PyTuple_Type, &columns[1],
                          &PyTuple_Type, &columns[2], &PyTuple_Type, &columns[3], &queue_offset, &physical_offset, &PyTuple_Type,
                          &places)
        || !PyArg_ParseTuple(places, "iiiiiiiii", &at[SIZE], &at[CRC], &at[FLAG], &at[BODY_LENGTH], &at[QUEUE_OFFSET],
                             &at[PHYSICAL_OFFSET], &at[HEAD], &at[PROPERTIES_LENGTH], &at[BETWEEN]))
        return NULL;
    suffix = rest - at[HEAD] - (Py_ssize_t)at[BETWEEN];
    int taken = rest <= 1 << 20 && suffix >= 0 && at[PROPERTIES_LENGTH] >= 0
        && at[BETWEEN] >= SHORT && at[PROPERTIES_LENGTH] <= at[BETWEEN] - SHORT && at[HEAD] >= LONG;
    for (int field = SIZE; taken && field < HEAD; field++)
        taken = at[field] >= 0 && at[field] <= at[HEAD] - (field < QUEUE_OFFSET ? INT : LONG);
    count = PyTuple_Size(columns[0]);
    for (int column = 1; column < 4; column++)
        taken = taken && PyTuple_Size(columns[column]) == count;
    for (place = 0; taken && place < count; place++) {
        taken = read_message(columns, place, rest, suffix, &message) && message.size <= PY_SSIZE_T_MAX - total;
        total += taken ? message.size : 0;
    }
    if (!taken || queue_offset > INT64_MAX - count || physical_offset > INT64_MAX - total)
        Py_RETURN_NONE;
    if (!(records = PyBytes_FromStringAndSize(NULL, total)) || !(sizes = PyList_New(count)))
        goto failed;
    uint8_t *to = (uint8_t *)PyBytes_AsString(records);
    for (place = 0; place < count; place++, physical_offset += message.size) {
        read_message(columns, place, rest, suffix, &message);
        uint8_t *head = to, *behind = to = copy(copy(to, pattern, at[HEAD]), message.body, message.body_bytes);
        put(head + at[SIZE], message.size, INT);
        put(head + at[CRC], message.crc & 0x7FFFFFFF, INT);
        put(head + at[FLAG], message.flag, INT);
        put(head + at[BODY_LENGTH], message.body_bytes, INT);
        put(head + at[QUEUE_OFFSET], queue_offset + place, LONG);
        put(head + at[PHYSICAL_OFFSET], physical_offset, LONG);
        to = copy(to, pattern + at[HEAD], at[BETWEEN]);
        to = copy(copy(to, message.text, message.text_bytes), pattern + rest - suffix, suffix);
        put(behind + at[PROPERTIES_LENGTH], message.text_bytes + suffix, SHORT);
        if (!(number = PyLong_FromSsize_t(message.size)) || PyList_SetItem(sizes, place, number))
            goto failed;
    }
    return Py_BuildValue("NN", records, sizes);
failed:
    Py_XDECREF(records), Py_XDECREF(sizes);
    return NULL;
}

static PyMethodDef functions[] = {
    {"read_columns", read_columns, METH_VARARGS, NULL}, {"encode_records", encode_records, METH_VARARGS, NULL}, {0}};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, .m_name = "batches", .m_methods = functions};

PyMODINIT_FUNC PyInit_batches(void)
{
    return PyModuleDef_Init(&definition);
}
