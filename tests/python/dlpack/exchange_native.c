/* Both ends of DLPack's exchange table in plain C: functions that use the table of any type, and a type that offers
 * one. Knows nothing of Bascule except the layout. */
#define PY_SSIZE_T_CLEAN
#include <pthread.h>

#include <Python.h>

#include <bascule/interface/arrays/dlpack_abi.h>

#define CAPSULE "dlpack_exchange_api"
#define ATTRIBUTE "__dlpack_c_exchange_api__"
enum { MOST_DIMENSIONS = 64 };

/* --- A tensor type with a table ------------------------------------------------------------------------- */

typedef struct {
    PyObject_HEAD BasculeDLTensor tensor;
    int64_t shape[MOST_DIMENSIONS], strides[MOST_DIMENSIONS];
    int readonly;
    PyObject* owner;   /* of the memory */
    PyObject* failure; /* raised by the table's functions; None: they fail without an exception */
} Tensor;

/* How often each function was called. */
static _Atomic long borrowed, managed_made, managed_deleted, streams_asked;
static uintptr_t work_stream;

static int fails(Tensor* self) {
    if (!self->failure) return 0;
    if (self->failure != Py_None) PyErr_SetString(self->failure, "as the test wants it");
    return 1;
}

static int tensor_from_object(void* object, BasculeDLTensor* out) {
    Tensor* self = object;
    ++borrowed;
    if (fails(self)) return -1;
    *out = self->tensor;
    return 0;
}

static void delete_managed(BasculeDLManagedVersioned* managed) {
    ++managed_deleted;
    const PyGILState_STATE state = PyGILState_Ensure();
    Py_DECREF((PyObject*)managed->context);
    PyGILState_Release(state);
    free(managed);
}

static int managed_from_object(void* object, BasculeDLManagedVersioned** out) {
    Tensor* self = object;
    if (fails(self)) return -1;
    BasculeDLManagedVersioned* managed = calloc(1, sizeof *managed);
    if (!managed) return PyErr_NoMemory(), -1;
    ++managed_made;
    managed->version.major = BASCULE_DL_MAJOR;
    managed->version.minor = BASCULE_DL_MINOR;
    managed->context = Py_NewRef((PyObject*)self);
    managed->deleter = delete_managed;
    managed->flags = self->readonly ? BASCULE_DL_READ_ONLY : 0;
    managed->tensor = self->tensor;
    *out = managed;
    return 0;
}

static int managed_to_object(BasculeDLManagedVersioned* managed, void** out) {
    (void)managed, (void)out;
    PyErr_SetString(PyExc_NotImplementedError, "this type is a producer only");
    return -1;
}

static int allocate(BasculeDLTensor* prototype, BasculeDLManagedVersioned** out, void* context,
                    void (*fail)(void*, const char*, const char*)) {
    (void)prototype, (void)out;
    fail(context, "NotImplementedError", "this type is a producer only");
    return -1;
}

static int current_work_stream(int32_t type, int32_t id, void** out) {
    (void)type, (void)id;
    ++streams_asked;
    *out = (void*)work_stream;
    return 0;
}

static int failing_work_stream(int32_t type, int32_t id, void** out) {
    (void)type, (void)id, (void)out;
    PyErr_SetString(PyExc_RuntimeError, "there is no work stream");
    return -1;
}

#define VERSION(major, minor, previous) \
    { {major, minor}, (BasculeDLExchangeHeader*)(previous) }
#define FUNCTIONS(tensor, stream) allocate, managed_from_object, managed_to_object, tensor, stream

static BasculeDLExchange whole = {VERSION(1, 3, NULL), FUNCTIONS(tensor_from_object, current_work_stream)};
static BasculeDLExchange minor_99 = {VERSION(1, 99, NULL),
                                     FUNCTIONS(tensor_from_object, current_work_stream)};
static BasculeDLExchange managed_only = {VERSION(1, 3, NULL), FUNCTIONS(NULL, current_work_stream)};
static BasculeDLExchange streamless = {VERSION(1, 3, NULL), FUNCTIONS(tensor_from_object, NULL)};
static BasculeDLExchange no_stream_now = {VERSION(1, 3, NULL),
                                          FUNCTIONS(tensor_from_object, failing_work_stream)};
static BasculeDLExchange newer = {VERSION(2, 0, &whole), FUNCTIONS(NULL, NULL)};
static BasculeDLExchange newer_only = {VERSION(2, 0, NULL), FUNCTIONS(NULL, NULL)};
static BasculeDLExchange cyclic = {VERSION(3, 0, &cyclic), FUNCTIONS(NULL, NULL)};

/* table(name): a capsule for a class attribute. */
static PyObject* make_table(PyObject* module, PyObject* argument) {
    static const struct {
        const char* name;
        BasculeDLExchange* table;
    } tables[] = {{"whole", &whole},
                  {"minor_99", &minor_99},
                  {"managed_only", &managed_only},
                  {"streamless", &streamless},
                  {"no_stream_now", &no_stream_now},
                  {"newer", &newer},
                  {"newer_only", &newer_only},
                  {"cyclic", &cyclic}};
    (void)module;
    const char* name = PyUnicode_AsUTF8(argument);
    if (!name) return NULL;
    if (!strcmp(name, "misnamed")) return PyCapsule_New(&whole, "another_api", NULL);
    for (size_t i = 0; i < sizeof tables / sizeof *tables; ++i)
        if (!strcmp(name, tables[i].name)) return PyCapsule_New(tables[i].table, CAPSULE, NULL);
    return PyErr_Format(PyExc_ValueError, "there is no table %s", name);
}

static int read_extents(PyObject* tuple, int64_t* out) {
    const Py_ssize_t size = PyTuple_Size(tuple);
    if (size > MOST_DIMENSIONS) return PyErr_SetString(PyExc_ValueError, "too many dimensions"), -1;
    for (Py_ssize_t i = 0; i < size; ++i) out[i] = PyLong_AsLongLong(PyTuple_GET_ITEM(tuple, i));
    return PyErr_Occurred() ? -1 : (int)size;
}

static int tensor_init(PyObject* object, PyObject* arguments, PyObject* keywords) {
    static char* names[] = {"data",        "shape",     "strides",  "code",  "bits",    "lanes",
                            "device_type", "device_id", "readonly", "owner", "failure", NULL};
    Tensor* self = (Tensor*)object;
    unsigned long long data;
    PyObject *shape, *strides = NULL, *owner = NULL, *failure = NULL;
    int code = 2, bits = 32, lanes = 1, type = BASCULE_DL_CUDA, id = 0, readonly = 0;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "KO!|$O!iiiiipOO", names, &data, &PyTuple_Type,
                                     &shape, &PyTuple_Type, &strides, &code, &bits, &lanes, &type, &id,
                                     &readonly, &owner, &failure))
        return -1;
    const int ndim = read_extents(shape, self->shape);
    if (ndim < 0 || (strides && read_extents(strides, self->strides) != ndim)) return -1;
    self->tensor = (BasculeDLTensor){.data = (void*)(uintptr_t)data,
                                     .device = {type, id},
                                     .ndim = ndim,
                                     .dtype = {(uint8_t)code, (uint8_t)bits, (uint16_t)lanes},
                                     .shape = self->shape,
                                     .strides = strides ? self->strides : NULL};
    self->readonly = readonly;
    Py_XSETREF(self->owner, Py_XNewRef(owner));
    Py_XSETREF(self->failure, Py_XNewRef(failure));
    return 0;
}

static void tensor_deallocate(PyObject* object) {
    PyTypeObject* type = Py_TYPE(object);
    Py_XDECREF(((Tensor*)object)->owner);
    Py_XDECREF(((Tensor*)object)->failure);
    type->tp_free(object);
    Py_DECREF(type);
}

static PyType_Slot tensor_slots[] = {{Py_tp_init, (void*)tensor_init},
                                     {Py_tp_new, (void*)PyType_GenericNew},
                                     {Py_tp_dealloc, (void*)tensor_deallocate},
                                     {Py_tp_doc, (void*)"Tensor(data, shape, *, strides, code, bits, lanes, "
                                                        "device_type, device_id, readonly, owner, failure)"},
                                     {0, NULL}};
static PyType_Spec tensor_spec = {"exchange_native.Tensor", sizeof(Tensor), 0,
                                  Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, tensor_slots};

static PyObject* count(PyObject* module, PyObject* unused) {
    (void)module, (void)unused;
    return Py_BuildValue("{sl sl sl sl}", "borrowed", borrowed, "made", managed_made, "deleted",
                         managed_deleted, "streams", streams_asked);
}

static PyObject* set_work_stream(PyObject* module, PyObject* argument) {
    (void)module;
    work_stream = (uintptr_t)PyLong_AsUnsignedLongLong(argument);
    if (PyErr_Occurred()) return NULL;
    Py_RETURN_NONE;
}

/* --- Using the table of any type ------------------------------------------------------------------------ */

static const BasculeDLExchange* table_of(PyObject* type) {
    PyObject* capsule = PyObject_GetAttrString(type, ATTRIBUTE);
    if (!capsule) return NULL;
    const BasculeDLExchange* table = PyCapsule_GetPointer(capsule, CAPSULE);
    Py_DECREF(capsule);
    return table;
}

static PyObject* extents(const int64_t* values, int32_t ndim) {
    PyObject* tuple = PyTuple_New(ndim);
    for (int32_t i = 0; tuple && i < ndim; ++i) PyTuple_SET_ITEM(tuple, i, PyLong_FromLongLong(values[i]));
    return tuple;
}

static PyObject* describe(const BasculeDLTensor* tensor) {
    return Py_BuildValue(
        "{sK s(ii) s(iii) sN sN}", "data", (unsigned long long)(uintptr_t)tensor->data + tensor->byte_offset,
        "device", (int)tensor->device.type, (int)tensor->device.id, "dtype", (int)tensor->dtype.code,
        (int)tensor->dtype.bits, (int)tensor->dtype.lanes, "shape", extents(tensor->shape, tensor->ndim),
        "strides", extents(tensor->strides, tensor->ndim));
}

/* borrow(object): the fields of the tensor that the table of its type lends. */
static PyObject* borrow(PyObject* module, PyObject* object) {
    (void)module;
    const BasculeDLExchange* table = table_of((PyObject*)Py_TYPE(object));
    BasculeDLTensor tensor;
    if (!table || table->tensor_from_object(object, &tensor)) return NULL;
    return describe(&tensor);
}

/* borrow_wrongly(object, type): borrows with the table of another type. */
static PyObject* borrow_wrongly(PyObject* module, PyObject* arguments) {
    PyObject *object, *type;
    BasculeDLTensor tensor;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "OO", &object, &type)) return NULL;
    const BasculeDLExchange* table = table_of(type);
    if (!table || table->tensor_from_object(object, &tensor)) return NULL;
    return describe(&tensor);
}

/* take(object): the fields and flags of a managed tensor, which is deleted at once. */
static PyObject* take(PyObject* module, PyObject* object) {
    (void)module;
    const BasculeDLExchange* table = table_of((PyObject*)Py_TYPE(object));
    BasculeDLManagedVersioned* managed;
    if (!table || table->managed_from_object(object, &managed)) return NULL;
    PyObject* fields = describe(&managed->tensor);
    PyObject* result = Py_BuildValue("NKII", fields, (unsigned long long)managed->flags,
                                     managed->version.major, managed->version.minor);
    managed->deleter(managed);
    return result;
}

/* round_trip(object): converts a managed tensor of it to an object with the same table. */
static PyObject* round_trip(PyObject* module, PyObject* object) {
    (void)module;
    const BasculeDLExchange* table = table_of((PyObject*)Py_TYPE(object));
    BasculeDLManagedVersioned* managed;
    void* result;
    if (!table || table->managed_from_object(object, &managed)) return NULL;
    if (table->managed_to_object(managed, &result)) {
        managed->deleter(managed);
        return NULL;
    }
    return result;
}

/* hand_over(object, type): converts a managed tensor of the object to an object with another type's table. */
static PyObject* hand_over(PyObject* module, PyObject* arguments) {
    PyObject *object, *type;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "OO", &object, &type)) return NULL;
    const BasculeDLExchange* from = table_of((PyObject*)Py_TYPE(object));
    const BasculeDLExchange* to = from ? table_of(type) : NULL;
    BasculeDLManagedVersioned* managed;
    void* result;
    if (!to || from->managed_from_object(object, &managed)) return NULL;
    if (to->managed_to_object(managed, &result)) {
        managed->deleter(managed);
        return NULL;
    }
    return result;
}

static void* run_deleter(void* managed) {
    ((BasculeDLManagedVersioned*)managed)->deleter(managed);
    return NULL;
}

/* delete_elsewhere(object): its managed tensor is deleted by a thread that Python does not know. */
static PyObject* delete_elsewhere(PyObject* module, PyObject* object) {
    (void)module;
    const BasculeDLExchange* table = table_of((PyObject*)Py_TYPE(object));
    BasculeDLManagedVersioned* managed;
    pthread_t thread;
    int status;
    if (!table || table->managed_from_object(object, &managed)) return NULL;
    Py_BEGIN_ALLOW_THREADS;
    status = pthread_create(&thread, NULL, run_deleter, managed);
    if (!status) pthread_join(thread, NULL);
    Py_END_ALLOW_THREADS;
    if (status) return PyErr_Format(PyExc_OSError, "pthread_create returned %d", status);
    Py_RETURN_NONE;
}

static BasculeDLManagedVersioned* kept;

static void delete_kept(void) {
    kept->deleter(kept);
    puts(Py_IsInitialized() ? "deleted too early" : "deleted after Python");
}

/* delete_at_exit(object): its managed tensor is deleted after the interpreter was finalized. */
static PyObject* delete_at_exit(PyObject* module, PyObject* object) {
    (void)module;
    const BasculeDLExchange* table = table_of((PyObject*)Py_TYPE(object));
    if (!table || table->managed_from_object(object, &kept)) return NULL;
    if (atexit(delete_kept)) return PyErr_Format(PyExc_OSError, "atexit failed");
    Py_RETURN_NONE;
}

static void raise_failure(void* context, const char* kind, const char* message) {
    PyGILState_STATE state = PyGILState_Ensure();
    PyErr_Format(context, "%s: %s", kind, message);
    PyGILState_Release(state);
}

/* allocate(type, shape, code, bits, device_type, device_id): a new object, through the type's table; the
 * allocation happens without the GIL. Failures are MemoryErrors that say "kind: message". */
static PyObject* allocate_by(PyObject* module, PyObject* arguments) {
    PyObject *type, *shape;
    int code, bits, device_type, device_id, status;
    int64_t values[MOST_DIMENSIONS];
    BasculeDLManagedVersioned* managed;
    void* result;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "OO!iiii", &type, &PyTuple_Type, &shape, &code, &bits, &device_type,
                          &device_id))
        return NULL;
    const BasculeDLExchange* table = table_of(type);
    const int ndim = table ? read_extents(shape, values) : -1;
    if (ndim < 0) return NULL;
    BasculeDLTensor prototype = {.device = {device_type, device_id},
                                 .ndim = ndim,
                                 .dtype = {(uint8_t)code, (uint8_t)bits, 1},
                                 .shape = values};
    Py_BEGIN_ALLOW_THREADS;
    status = table->allocate(&prototype, &managed, PyExc_MemoryError, raise_failure);
    Py_END_ALLOW_THREADS;
    if (status) return NULL;
    if (table->managed_to_object(managed, &result)) {
        managed->deleter(managed);
        return NULL;
    }
    return result;
}

/* current_stream(type, device_type, device_id): the current stream of the type's table. */
static PyObject* current_stream(PyObject* module, PyObject* arguments) {
    PyObject* type;
    int device_type, device_id;
    void* stream;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "Oii", &type, &device_type, &device_id)) return NULL;
    const BasculeDLExchange* table = table_of(type);
    if (!table || table->current_work_stream(device_type, device_id, &stream)) return NULL;
    return PyLong_FromVoidPtr(stream);
}

/* version(type): the (major, minor) version of its table. */
static PyObject* version(PyObject* module, PyObject* type) {
    (void)module;
    const BasculeDLExchange* table = table_of(type);
    if (!table) return NULL;
    return Py_BuildValue("(II)", table->header.version.major, table->header.version.minor);
}

static PyMethodDef methods[] = {{"borrow", borrow, METH_O, NULL},
                                {"borrow_wrongly", borrow_wrongly, METH_VARARGS, NULL},
                                {"take", take, METH_O, NULL},
                                {"round_trip", round_trip, METH_O, NULL},
                                {"hand_over", hand_over, METH_VARARGS, NULL},
                                {"delete_elsewhere", delete_elsewhere, METH_O, NULL},
                                {"delete_at_exit", delete_at_exit, METH_O, NULL},
                                {"allocate", allocate_by, METH_VARARGS, NULL},
                                {"current_stream", current_stream, METH_VARARGS, NULL},
                                {"version", version, METH_O, NULL},
                                {"table", make_table, METH_O, NULL},
                                {"count", count, METH_NOARGS, NULL},
                                {"set_work_stream", set_work_stream, METH_O, NULL},
                                {0}};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "exchange_native", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_exchange_native(void) {
    PyObject* module = PyModule_Create(&definition);
    PyObject* type = PyType_FromSpec(&tensor_spec);
    PyObject* capsule = PyCapsule_New(&whole, CAPSULE, NULL);
    if (!module || !type || !capsule || PyObject_SetAttrString(type, ATTRIBUTE, capsule) ||
        PyModule_AddObjectRef(module, "Tensor", type))
        Py_CLEAR(module);
#ifdef Py_GIL_DISABLED
    if (module && PyUnstable_Module_SetGIL(module, Py_MOD_GIL_NOT_USED)) Py_CLEAR(module);
#endif
    Py_XDECREF(capsule);
    Py_XDECREF(type);
    return module;
}
