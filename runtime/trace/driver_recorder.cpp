#include <algorithm>
#include <atomic>
#include <iterator>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include <bascule/jit/process/never_destroyed.hpp>
#include <bascule/runtime/lifetime/bookkeeping.hpp>
#include <bascule/runtime/trace/driver_recorder.hpp>

namespace bascule {
namespace {

using Operation = BasculeEmulatedOperation;

template <class Handle>
std::uint64_t number_of(Handle handle) noexcept {
    return reinterpret_cast<std::uint64_t>(handle);
}

/// The names of kernels that have been looked up since the recorder was first used.
struct LoadedNames {
    std::mutex mutex;
    std::map<std::uint64_t, std::string> of_handle;  // CUkernel and CUfunction

    void set(std::uint64_t handle, std::string name) {
        const std::lock_guard lock(mutex);
        of_handle[handle] = std::move(name);
    }
    std::string get(std::uint64_t handle) {
        const std::lock_guard lock(mutex);
        const auto found = of_handle.find(handle);
        return found == of_handle.end() ? std::string() : found->second;
    }
};

LoadedNames& kernel_names() { return never_destroyed<LoadedNames>(); }  // used by calls at exit

/// One row for each driver function whose calls are recorded as operations.
struct OperationRow {
    std::string_view function;
    std::uint32_t kind;
    std::string_view shown = function;  ///< its name in the emulated device's trace
    std::uint64_t unit = 1;             ///< bytes per element of its size argument

    /// Whether it is recorded after the call has succeeded, because the call creates the handle or address.
    bool is_after() const noexcept {
        return kind == BASCULE_EMULATED_ALLOCATE || kind == BASCULE_EMULATED_CREATE;
    }
};
constexpr OperationRow rows[] = {
    {"cuEventRecord", BASCULE_EMULATED_RECORD},
    {"cuStreamWaitEvent", BASCULE_EMULATED_WAIT},
    {"cuLaunchKernelEx", BASCULE_EMULATED_LAUNCH},
    {"cuGraphLaunch", BASCULE_EMULATED_GRAPH_LAUNCH},
    {"cuMemcpyHtoDAsync", BASCULE_EMULATED_COPY},
    {"cuMemcpyDtoHAsync", BASCULE_EMULATED_COPY},
    {"cuMemcpyDtoDAsync", BASCULE_EMULATED_COPY},
    {"cuMemcpyPeerAsync", BASCULE_EMULATED_COPY},
    {"cuMemcpy3DAsync", BASCULE_EMULATED_COPY},
    {"cuArrayDestroy", BASCULE_EMULATED_FREE, "cuMemFree"},
    {"cuMemsetD8Async", BASCULE_EMULATED_FILL},
    {"cuMemsetD16Async", BASCULE_EMULATED_FILL, "cuMemsetD16Async", 2},
    {"cuMemsetD32Async", BASCULE_EMULATED_FILL, "cuMemsetD32Async", 4},
    {"cuMemFree", BASCULE_EMULATED_FREE},
    {"cuMemFreeHost", BASCULE_EMULATED_FREE, "cuMemFree"},
    {"cuMemFreeAsync", BASCULE_EMULATED_FREE},
    {"cuStreamSynchronize", BASCULE_EMULATED_SYNCHRONIZE},
    {"cuEventSynchronize", BASCULE_EMULATED_SYNCHRONIZE},
    {"cuCtxSynchronize", BASCULE_EMULATED_SYNCHRONIZE},
    {"cuStreamDestroy", BASCULE_EMULATED_DESTROY},
    {"cuEventDestroy", BASCULE_EMULATED_DESTROY},
    {"cuLibraryUnload", BASCULE_EMULATED_DESTROY},
    {"cuMemAlloc", BASCULE_EMULATED_ALLOCATE},
    {"cuMemAllocManaged", BASCULE_EMULATED_ALLOCATE, "cuMemAlloc"},
    {"cuMemHostAlloc", BASCULE_EMULATED_ALLOCATE, "cuMemAlloc"},
    {"cuMemAllocFromPoolAsync", BASCULE_EMULATED_ALLOCATE},
    {"cuStreamCreateWithPriority", BASCULE_EMULATED_CREATE, "cuStreamCreate"},
    {"cuEventCreate", BASCULE_EMULATED_CREATE},
    {"cuLibraryLoadData", BASCULE_EMULATED_CREATE},
};

/// The index of the function's row, or the number of rows for other functions.
consteval std::size_t row_of(std::string_view function) {
    return static_cast<std::size_t>(std::ranges::find(rows, function, &OperationRow::function) - rows);
}

void set_name(Operation& operation, std::string_view name) noexcept {
    name.copy(operation.name, sizeof operation.name - 1);
}

// Sets the field of the operation that an argument determines, by the argument's type.
void note(Operation& operation, CUstream stream) { operation.stream = number_of(stream); }
void note(Operation& operation, CUstream* made) { operation.stream = number_of(*made); }
void note(Operation& operation, CUevent event) { operation.event = number_of(event); }
void note(Operation& operation, CUevent* made) { operation.event = number_of(*made); }
void note(Operation& operation, std::size_t size) { operation.bytes = size; }
void note(Operation& operation, const CUDA_MEMCPY3D* copy) {
    operation.bytes = copy->WidthInBytes * copy->Height * copy->Depth;
}
void note(Operation& operation, const CUlaunchConfig* config) { note(operation, config->hStream); }
void note(Operation& operation, CUfunction kernel) {
    set_name(operation, kernel_names().get(number_of(kernel)));
}
template <class Argument>
void note(Operation&, const Argument&) {}

template <class... Arguments>
Operation operation_of(const OperationRow& row, const Arguments&... arguments) {
    Operation made = {};
    made.kind = row.kind;
    set_name(made, row.kind == BASCULE_EMULATED_LAUNCH ? "" : row.shown);
    (note(made, arguments), ...);
    made.bytes *= row.unit;
    return made;
}

// Notes the kernel names that a call reveals.
void learn_name(CUkernel* kernel, CUlibrary, const char* name) {
    kernel_names().set(number_of(*kernel), name);
}
void learn_name(CUfunction* function, CUkernel kernel) {
    kernel_names().set(number_of(*function), kernel_names().get(number_of(kernel)));
}
template <class... Arguments>
void learn_name(const Arguments&...) {}

class Recorder {
  public:
    static Recorder& get() {
        static Recorder& recorder = *new Recorder;
        return recorder;
    }

    /// Appends an operation and returns its index, so that it can be removed if the driver call fails.
    std::optional<std::size_t> add(Operation operation) {
        if (!on_.load(std::memory_order_relaxed) || Bookkeeping::active()) return std::nullopt;
        operation.device = current_ordinal();
        const std::lock_guard lock(mutex_);
        operations_.push_back(operation);
        return operations_.size() - 1;
    }
    void remove(std::size_t place) {
        const std::lock_guard lock(mutex_);
        if (place < operations_.size()) operations_[place].kind = 0;
    }
    void turn(bool on) {
        const std::lock_guard lock(mutex_);
        if (on) operations_.clear();
        on_ = on;
    }
    std::vector<Operation> operations() {
        const std::lock_guard lock(mutex_);
        std::vector<Operation> found;
        std::copy_if(operations_.begin(), operations_.end(), std::back_inserter(found),
                     [](const Operation& each) { return each.kind != 0; });
        return found;
    }

    const DriverFunctions& real() const noexcept { return real_; }
    std::map<std::string_view, std::atomic<std::uint64_t>> calls;  // the keys are fixed after construction

  private:
    Recorder();
    int current_ordinal() const {
        CUdevice device = -1;
        return real_.cuCtxGetDevice(&device) == CUDA_SUCCESS ? device : -1;
    }

    DriverFunctions real_;
    std::atomic<bool> on_{false};
    std::mutex mutex_;
    std::vector<Operation> operations_;
};

Recorder* the_recorder = nullptr;  // set before the table is changed; only the table's functions read it

/// Replaces an entry of the table: counts the call and records its operation.
template <class Function>
struct Recorded;

template <class... Arguments>
struct Recorded<CUresult (*)(Arguments...)> {
    template <auto member, std::size_t row>
    struct Entry {
        static inline std::atomic<std::uint64_t>* count = nullptr;

        static CUresult call(Arguments... arguments) {
            count->fetch_add(1, std::memory_order_relaxed);
            if constexpr (row < std::size(rows)) return call_operation(arguments...);
            const CUresult result = (the_recorder->real().*member).pointer(arguments...);
            if (result == CUDA_SUCCESS) learn_name(arguments...);
            return result;
        }

        static CUresult call_operation(Arguments... arguments) {
            Recorder& recorder = *the_recorder;
            std::optional<std::size_t> place;
            if (!rows[row].is_after()) place = recorder.add(operation_of(rows[row], arguments...));
            const CUresult result = (recorder.real().*member).pointer(arguments...);
            if (result != CUDA_SUCCESS) {
                if (place) recorder.remove(*place);
            } else if (rows[row].is_after()) {
                recorder.add(operation_of(rows[row], arguments...));
            }
            return result;
        }
    };
};

Recorder::Recorder() : real_(Driver::get().api()) {
    the_recorder = this;
    auto& table = const_cast<DriverFunctions&>(Driver::get().api());
#define RECORD(function, version, mode)                                                                  \
    if (table.function) {                                                                                \
        using Wrapped =                                                                                  \
            Recorded<PFN_##function##_v##version>::Entry<&DriverFunctions::function, row_of(#function)>; \
        Wrapped::count = &calls[#function];                                                              \
        table.function.pointer = &Wrapped::call;                                                         \
    }
    BASCULE_DRIVER_FUNCTIONS(RECORD)
    BASCULE_OPTIONAL_DRIVER_FUNCTIONS(RECORD)
#undef RECORD
}

}  // namespace

void record_operations(bool on) { Recorder::get().turn(on); }

std::vector<BasculeEmulatedOperation> recorded_operations() { return Recorder::get().operations(); }

std::uint64_t recorded_calls_of(std::string_view function) {
    const auto& calls = Recorder::get().calls;
    const auto found = calls.find(function);
    return found == calls.end() ? 0 : found->second.load();
}

}  // namespace bascule
