/* Loops in C for the benchmarks: reading interfaces, calling, and launching with driver calls alone. Times are
 * nanoseconds for all repetitions together. */
#define _POSIX_C_SOURCE 200809L
#define PY_SSIZE_T_CLEAN
#include <dlfcn.h>
#include <time.h>

#include <Python.h>
#include <cuda.h>

#if defined(__has_include)
#if __has_include(<valgrind/callgrind.h>)
#include <valgrind/callgrind.h>
#endif
#endif

/* The processor time of the thread, which other programs on the machine affect least; after use_wall_clock(), wall
 * time: a GPU's driver may sleep, or work in other threads. */
static clockid_t used_clock = CLOCK_THREAD_CPUTIME_ID;

static double now_ns(void) {
    struct timespec time;
    clock_gettime(used_clock, &time);
    return 1e9 * (double)time.tv_sec + (double)time.tv_nsec;
}

/* --- An array type as in a C library: each read makes a new dict ----------------------------------------- */

typedef struct {
    PyObject_HEAD unsigned long long pointer, stream;
    Py_ssize_t size;
    PyObject* typestr;
    int interned; /* 0: each dict has new keys, as pybind11 and nanobind make them */
} Producer;

static PyObject *key_shape, *key_typestr, *key_data, *key_strides, *key_stream, *key_version, *interface_name;

static int put(const Producer* self, PyObject* dict, PyObject* key, PyObject* value) {
    if (self->interned) return PyDict_SetItem(dict, key, value);
    PyObject* copy = PyUnicode_FromString(PyUnicode_AsUTF8(key));
    const int failed = !copy || PyDict_SetItem(dict, copy, value);
    Py_XDECREF(copy);
    return failed;
}

static PyObject* producer_interface(PyObject* object, void* closure) {
    Producer* self = (Producer*)object;
    PyObject* shape = Py_BuildValue("(n)", self->size);
    PyObject* data = Py_BuildValue("(KO)", self->pointer, Py_False);
    PyObject* stream = PyLong_FromUnsignedLongLong(self->stream);
    PyObject* three = PyLong_FromLong(3);
    PyObject* dict = PyDict_New();
    (void)closure;
    if (!shape || !data || !stream || !three || !dict || put(self, dict, key_shape, shape) ||
        put(self, dict, key_typestr, self->typestr) || put(self, dict, key_data, data) ||
        put(self, dict, key_strides, Py_None) || put(self, dict, key_stream, stream) ||
        put(self, dict, key_version, three))
        Py_CLEAR(dict);
    Py_XDECREF(shape);
    Py_XDECREF(data);
    Py_XDECREF(stream);
    Py_XDECREF(three);
    return dict;
}

static int producer_init(PyObject* object, PyObject* arguments, PyObject* keywords) {
    static char* names[] = {"pointer", "size", "typestr", "stream", "interned", NULL};
    Producer* self = (Producer*)object;
    PyObject* typestr;
    self->stream = 1; /* the legacy default stream, as most producers report */
    self->interned = 1;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "KnU|K$p", names, &self->pointer, &self->size,
                                     &typestr, &self->stream, &self->interned))
        return -1;
    Py_XSETREF(self->typestr, Py_NewRef(typestr));
    return 0;
}

static void producer_deallocate(PyObject* object) {
    PyTypeObject* type = Py_TYPE(object);
    Py_XDECREF(((Producer*)object)->typestr);
    type->tp_free(object);
    Py_DECREF(type);
}

static PyGetSetDef producer_attributes[] = {
    {"__cuda_array_interface__", producer_interface, NULL, "Version 3, a new dict at each read.", NULL}, {0}};

static PyType_Slot producer_slots[] = {
    {Py_tp_init, (void*)producer_init},
    {Py_tp_new, (void*)PyType_GenericNew},
    {Py_tp_dealloc, (void*)producer_deallocate},
    {Py_tp_getset, producer_attributes},
    {Py_tp_doc, (void*)"Producer(pointer, size, typestr, stream=1, *, interned=True)"},
    {0, NULL}};

static PyType_Spec producer_spec = {"bench_native.Producer", sizeof(Producer), 0, Py_TPFLAGS_DEFAULT,
                                    producer_slots};

/* --- A type whose expressions `e[grid, block]`, `e.k` and `e.forall(n)` only return `e`, to time these alone -- */

static PyObject* empty_subscript(PyObject* self, PyObject* key) {
    (void)key;
    return Py_NewRef(self);
}

static PyObject* empty_attribute(PyObject* self, void* closure) {
    (void)closure;
    return Py_NewRef(self);
}

static PyObject* empty_method(PyObject* self, PyObject* const* arguments, Py_ssize_t count, PyObject* names) {
    (void)arguments, (void)count, (void)names;
    return Py_NewRef(self);
}

static PyGetSetDef empty_attributes[] = {{"k", empty_attribute, NULL, "The object itself.", NULL}, {0}};

static PyMethodDef empty_methods[] = {{"forall", (PyCFunction)(void (*)(void))empty_method,
                                       METH_FASTCALL | METH_KEYWORDS, "The object itself."},
                                      {0}};

static PyType_Slot empty_slots[] = {{Py_tp_new, (void*)PyType_GenericNew},
                                    {Py_mp_subscript, (void*)empty_subscript},
                                    {Py_tp_getset, empty_attributes},
                                    {Py_tp_methods, empty_methods},
                                    {0, NULL}};

static PyType_Spec empty_spec = {"bench_native.Empty", sizeof(PyObject), 0, Py_TPFLAGS_DEFAULT, empty_slots};

/* --- Loops ---------------------------------------------------------------------------------------------- */

static PyObject* time_reads(PyObject* module, PyObject* arguments) {
    PyObject* object;
    Py_ssize_t count;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "On", &object, &count)) return NULL;
    const double start = now_ns();
    for (Py_ssize_t i = 0; i < count; ++i) {
        PyObject* dict = PyObject_GetAttr(object, interface_name);
        if (!dict) return NULL;
        Py_DECREF(dict);
    }
    return PyFloat_FromDouble(now_ns() - start);
}

enum { MOST_ARGUMENTS = 32 };

/* A callable and its arguments, as PyObject_Vectorcall takes them. */
typedef struct {
    PyObject *callable, *slots[MOST_ARGUMENTS + 1]; /* the callee may overwrite the first */
    size_t size;
} Call;

static int make_call(Call* call, PyObject* callable, PyObject* arguments) {
    const Py_ssize_t size = PyTuple_GET_SIZE(arguments);
    if (size > MOST_ARGUMENTS)
        return PyErr_Format(PyExc_ValueError, "at most %d arguments, got %zd", MOST_ARGUMENTS, size), -1;
    *call = (Call){.callable = callable, .size = (size_t)size | PY_VECTORCALL_ARGUMENTS_OFFSET};
    for (Py_ssize_t i = 0; i < size; ++i) call->slots[i + 1] = PyTuple_GET_ITEM(arguments, i);
    return 0;
}

static int invoke(const Call* call) {
    PyObject* result = PyObject_Vectorcall(call->callable, call->slots + 1, call->size, NULL);
    if (!result) return -1;
    Py_DECREF(result);
    return 0;
}

static PyObject* use_wall_clock(PyObject* module, PyObject* nothing) {
    (void)module, (void)nothing;
    used_clock = CLOCK_MONOTONIC;
    Py_RETURN_NONE;
}

static PyObject* noop(PyObject* module, PyObject* const* arguments, Py_ssize_t count) {
    (void)module, (void)arguments, (void)count;
    Py_RETURN_NONE;
}

/* --- The driver alone ----------------------------------------------------------------------------------- */

static CUresult (*launch_kernel_ex)(const CUlaunchConfig*, CUfunction, void**, void**);
static CUresult (*context_get_current)(CUcontext*);
static CUfunction function;
static CUresult (*event_record)(CUevent, CUstream);
static CUresult (*stream_wait_event)(CUstream, CUevent, unsigned);
static CUevent events[2];

static PyObject* driver_error(const char* call, CUresult result) {
    return PyErr_Format(PyExc_RuntimeError, "%s returned CUresult %d", call, (int)result);
}

/* load_driver(library_path, ptx, kernel_name): loads the kernel that time_driver_launches launches. */
static PyObject* load_driver(PyObject* module, PyObject* arguments) {
    const char *path, *ptx, *name;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "sss", &path, &ptx, &name)) return NULL;
    void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) return PyErr_Format(PyExc_OSError, "%s", dlerror());
    CUresult (*init)(unsigned) = (CUresult(*)(unsigned))dlsym(library, "cuInit");
    CUresult (*retain)(CUcontext*, CUdevice) =
        (CUresult(*)(CUcontext*, CUdevice))dlsym(library, "cuDevicePrimaryCtxRetain");
    CUresult (*set_current)(CUcontext) = (CUresult(*)(CUcontext))dlsym(library, "cuCtxSetCurrent");
    CUresult (*load)(CUmodule*, const void*) =
        (CUresult(*)(CUmodule*, const void*))dlsym(library, "cuModuleLoadData");
    CUresult (*get)(CUfunction*, CUmodule, const char*) =
        (CUresult(*)(CUfunction*, CUmodule, const char*))dlsym(library, "cuModuleGetFunction");
    launch_kernel_ex =
        (CUresult(*)(const CUlaunchConfig*, CUfunction, void**, void**))dlsym(library, "cuLaunchKernelEx");
    context_get_current = (CUresult(*)(CUcontext*))dlsym(library, "cuCtxGetCurrent");
    CUresult (*create)(CUevent*, unsigned) = (CUresult(*)(CUevent*, unsigned))dlsym(library, "cuEventCreate");
    event_record = (CUresult(*)(CUevent, CUstream))dlsym(library, "cuEventRecord");
    stream_wait_event = (CUresult(*)(CUstream, CUevent, unsigned))dlsym(library, "cuStreamWaitEvent");
    if (!init || !retain || !set_current || !load || !get || !launch_kernel_ex || !context_get_current ||
        !create || !event_record || !stream_wait_event)
        return PyErr_Format(PyExc_OSError, "%s lacks a function of the driver API", path);
    CUcontext context;
    CUmodule loaded;
    CUresult result;
    if ((result = init(0)) || (result = retain(&context, 0)) || (result = set_current(context)))
        return driver_error("making a context", result);
    if ((result = load(&loaded, ptx))) return driver_error("cuModuleLoadData", result);
    if ((result = get(&function, loaded, name))) return driver_error("cuModuleGetFunction", result);
    for (int i = 0; i < 2; ++i) {
        if ((result = create(&events[i], CU_EVENT_DISABLE_TIMING)))
            return driver_error("cuEventCreate", result);
    }
    Py_RETURN_NONE;
}

/* time_driver_launches(count, pointer, pointer, pointer, float, stream, grid, block): a launch's driver calls alone. */
static PyObject* time_driver_launches(PyObject* module, PyObject* arguments) {
    Py_ssize_t count;
    unsigned long long pointers[3], stream;
    float scalar;
    CUlaunchConfig config = {
        .gridDimX = 1, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 1, .blockDimY = 1, .blockDimZ = 1};
    (void)module;
    if (!PyArg_ParseTuple(arguments, "nKKKfKII", &count, pointers, pointers + 1, pointers + 2, &scalar,
                          &stream, &config.gridDimX, &config.blockDimX))
        return NULL;
    if (!function) return PyErr_Format(PyExc_RuntimeError, "call load_driver first");
    config.hStream = (CUstream)(uintptr_t)stream;
    void* parameters[] = {pointers, pointers + 1, pointers + 2, &scalar};
    const double start = now_ns();
    for (Py_ssize_t i = 0; i < count; ++i) {
        CUcontext context;
        CUresult result;
        if ((result = context_get_current(&context))) return driver_error("cuCtxGetCurrent", result);
        if ((result = launch_kernel_ex(&config, function, parameters, NULL)))
            return driver_error("cuLaunchKernelEx", result);
    }
    return PyFloat_FromDouble(now_ns() - start);
}

/* Records an event and waits for it: orders later work on `later` after the current work on `earlier`. */
static CUresult order(CUstream earlier, CUstream later, CUevent event) {
    const CUresult recorded = event_record(event, earlier);
    return recorded ? recorded : stream_wait_event(later, event, 0);
}

/* time_calls(callable, arguments, count[, producer, consumer]): with streams, also orders each call with events. */
static PyObject* time_calls(PyObject* module, PyObject* arguments) {
    PyObject *callable, *tuple;
    Py_ssize_t count;
    unsigned long long producer = 0, consumer = 0;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "OO!n|KK", &callable, &PyTuple_Type, &tuple, &count, &producer,
                          &consumer))
        return NULL;
    Call call;
    if (make_call(&call, callable, tuple)) return NULL;
    const int by_hand = PyTuple_GET_SIZE(arguments) > 3;
    if (by_hand && !function) return PyErr_Format(PyExc_RuntimeError, "call load_driver first");
    const CUstream p = (CUstream)(uintptr_t)producer, c = (CUstream)(uintptr_t)consumer;
    const double start = now_ns();
    for (Py_ssize_t i = 0; i < count; ++i) {
        CUresult ordered = by_hand ? order(p, c, events[0]) : CUDA_SUCCESS;
        if (invoke(&call)) return NULL;
        if (by_hand && !ordered) ordered = order(c, p, events[1]);
        if (ordered) return driver_error("ordering two streams", ordered);
    }
    return PyFloat_FromDouble(now_ns() - start);
}

/* time_driver_ordering(count, producer, consumer): the minimal driver calls that order a launch with one foreign
 * stream, two records and two waits. */
static PyObject* time_driver_ordering(PyObject* module, PyObject* arguments) {
    Py_ssize_t count;
    unsigned long long producer, consumer;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "nKK", &count, &producer, &consumer)) return NULL;
    if (!function) return PyErr_Format(PyExc_RuntimeError, "call load_driver first");
    const CUstream p = (CUstream)(uintptr_t)producer, c = (CUstream)(uintptr_t)consumer;
    const double start = now_ns();
    for (Py_ssize_t i = 0; i < count; ++i) {
        CUresult result;
        if ((result = order(p, c, events[0])) || (result = order(c, p, events[1])))
            return driver_error("ordering two streams", result);
    }
    return PyFloat_FromDouble(now_ns() - start);
}

/* --- Any function of the driver --------------------------------------------------------------------------- */

enum { MOST_WORDS = 12, MOST_CALLS = 8 };

typedef unsigned long long Word;

/* One call: every argument is an integer or a pointer, so that registers and stack slots hold one word for each. A
 * word that is `loaded` is read from memory at the call, because an earlier call of the sequence may have written
 * it. */
typedef struct {
    int (*function)(Word, Word, Word, Word, Word, Word, Word, Word, Word, Word, Word, Word);
    Word words[MOST_WORDS];
    int loaded[MOST_WORDS];
    Py_ssize_t size;
} NativeCall;

static int make_native_call(NativeCall* call, PyObject* tuple) {
    if (!PyTuple_Check(tuple) || PyTuple_GET_SIZE(tuple) < 1 || PyTuple_GET_SIZE(tuple) > MOST_WORDS + 1)
        return PyErr_Format(PyExc_ValueError, "a call is a tuple: (address, at most %d words)", MOST_WORDS),
               -1;
    memset(call, 0, sizeof *call);
    call->size = PyTuple_GET_SIZE(tuple) - 1;
    const Word address = PyLong_AsUnsignedLongLongMask(PyTuple_GET_ITEM(tuple, 0));
    memcpy(&call->function, &address, sizeof call->function);
    for (Py_ssize_t i = 0; i < call->size; ++i) {
        PyObject* word = PyTuple_GET_ITEM(tuple, i + 1);
        call->loaded[i] = PyTuple_Check(word) && PyTuple_GET_SIZE(word) == 1;
        call->words[i] = PyLong_AsUnsignedLongLongMask(call->loaded[i] ? PyTuple_GET_ITEM(word, 0) : word);
    }
    return PyErr_Occurred() ? -1 : 0;
}

static int invoke_native(const NativeCall* call) {
    Word w[MOST_WORDS];
    for (Py_ssize_t i = 0; i < MOST_WORDS; ++i) {
        w[i] = call->words[i];
        if (call->loaded[i]) memcpy(&w[i], (const void*)(uintptr_t)call->words[i], sizeof w[i]);
    }
    return call->function(w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7], w[8], w[9], w[10], w[11]);
}

/* time_sequence(count, calls): makes the calls in order, `count` times, without the GIL. Returns nanoseconds, the
 * first result that is not zero, and the index of its call; such a result ends the loop. */
static PyObject* time_sequence(PyObject* module, PyObject* arguments) {
    Py_ssize_t count;
    PyObject* tuple;
    NativeCall calls[MOST_CALLS];
    (void)module;
    if (!PyArg_ParseTuple(arguments, "nO!", &count, &PyTuple_Type, &tuple)) return NULL;
    const Py_ssize_t size = PyTuple_GET_SIZE(tuple);
    if (size > MOST_CALLS)
        return PyErr_Format(PyExc_ValueError, "at most %d calls, got %zd", MOST_CALLS, size);
    for (Py_ssize_t i = 0; i < size; ++i) {
        if (make_native_call(&calls[i], PyTuple_GET_ITEM(tuple, i))) return NULL;
    }
    int result = 0;
    Py_ssize_t index = 0;
    double taken;
    Py_BEGIN_ALLOW_THREADS;
    const double start = now_ns();
    for (Py_ssize_t i = 0; i < count && !result; ++i) {
        for (index = 0; index < size && !(result = invoke_native(&calls[index])); ++index) {
        }
    }
    taken = now_ns() - start;
    Py_END_ALLOW_THREADS;
    return Py_BuildValue("din", taken, result, result ? index : (Py_ssize_t)-1);
}

/* count_calls(callable, arguments, count, name): makes calls under callgrind, which writes a dump labelled NAME. */
static PyObject* count_calls(PyObject* module, PyObject* arguments) {
#ifdef RUNNING_ON_VALGRIND
    PyObject *callable, *tuple;
    Py_ssize_t count;
    const char* name;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "OO!ns", &callable, &PyTuple_Type, &tuple, &count, &name)) return NULL;
    Call call;
    if (make_call(&call, callable, tuple)) return NULL;
    CALLGRIND_START_INSTRUMENTATION;
    for (Py_ssize_t i = 0; i < count; ++i) {
        if (invoke(&call)) return NULL;
    }
    CALLGRIND_STOP_INSTRUMENTATION;
    CALLGRIND_DUMP_STATS_AT(name);
    Py_RETURN_NONE;
#else
    (void)module, (void)arguments;
    return PyErr_Format(PyExc_NotImplementedError,
                        "built without <valgrind/callgrind.h>: install valgrind and build bench_native "
                        "again");
#endif
}

static PyMethodDef methods[] = {
    {"time_reads", time_reads, METH_VARARGS, "time_reads(object, count): reads of __cuda_array_interface__"},
    {"time_calls", time_calls, METH_VARARGS,
     "time_calls(callable, arguments, count[, producer, consumer]): vectorcalls"},
    {"time_sequence", time_sequence, METH_VARARGS,
     "time_sequence(count, ((address, word, ...), ...)): functions of the driver, without the GIL"},
    {"count_calls", count_calls, METH_VARARGS,
     "count_calls(callable, arguments, count, name): under callgrind"},
    {"use_wall_clock", use_wall_clock, METH_NOARGS, "Times are wall clock from now on"},
    {"noop", (PyCFunction)(void (*)(void))noop, METH_FASTCALL, "Takes anything, does nothing"},
    {"load_driver", load_driver, METH_VARARGS, "load_driver(library_path, ptx, kernel_name)"},
    {"time_driver_launches", time_driver_launches, METH_VARARGS,
     "time_driver_launches(count, pointer, pointer, pointer, float, stream, grid, block)"},
    {"time_driver_ordering", time_driver_ordering, METH_VARARGS,
     "time_driver_ordering(count, producer, consumer)"},
    {0}};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "bench_native", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_bench_native(void) {
    key_shape = PyUnicode_InternFromString("shape");
    key_typestr = PyUnicode_InternFromString("typestr");
    key_data = PyUnicode_InternFromString("data");
    key_strides = PyUnicode_InternFromString("strides");
    key_stream = PyUnicode_InternFromString("stream");
    key_version = PyUnicode_InternFromString("version");
    interface_name = PyUnicode_InternFromString("__cuda_array_interface__");
    PyObject* module = PyModule_Create(&definition);
    PyObject* producer = PyType_FromSpec(&producer_spec);
    PyObject* empty = PyType_FromSpec(&empty_spec);
    if (!module || !producer || !empty || PyModule_AddObjectRef(module, "Producer", producer) ||
        PyModule_AddObjectRef(module, "Empty", empty))
        Py_CLEAR(module);
    Py_XDECREF(producer);
    Py_XDECREF(empty);
    return module;
}
