#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include <bascule/runtime/driver/driver.hpp>
#include <bascule/runtime/lifetime/bookkeeping.hpp>
#include <bascule/runtime/trace/driver_recorder.hpp>

namespace bascule {
namespace {

using Operation = BasculeEmulatedOperation;

template <class Handle>
std::uint64_t number_of(Handle handle) noexcept {
    return reinterpret_cast<std::uint64_t>(handle);
}

Operation operation(std::uint32_t kind, CUstream stream, std::string_view name, std::uint64_t bytes = 0,
                    CUevent event = nullptr) {
    Operation made = {};
    made.kind = kind;
    made.stream = number_of(stream);
    made.event = number_of(event);
    made.bytes = bytes;
    std::memcpy(made.name, name.data(), std::min(name.size(), sizeof made.name - 1));
    return made;
}

/// The names of kernels that were looked up since the first use of the recorder.
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

LoadedNames& kernel_names() {
    static LoadedNames& names = *new LoadedNames;  // calls at exit need it
    return names;
}

// One row for each function that is an operation. `issued` is asked before the call, `made` after one that succeeded.

template <FunctionName name>
struct Call {};

Operation issued(Call<"cuEventRecord">, CUevent event, CUstream stream) {
    return operation(BASCULE_EMULATED_RECORD, stream, "cuEventRecord", 0, event);
}
Operation issued(Call<"cuStreamWaitEvent">, CUstream stream, CUevent event, unsigned) {
    return operation(BASCULE_EMULATED_WAIT, stream, "cuStreamWaitEvent", 0, event);
}
Operation issued(Call<"cuLaunchKernelEx">, const CUlaunchConfig* config, CUfunction function, void**,
                 void**) {
    return operation(BASCULE_EMULATED_LAUNCH, config->hStream, kernel_names().get(number_of(function)));
}
Operation issued(Call<"cuGraphLaunch">, CUgraphExec, CUstream stream) {
    return operation(BASCULE_EMULATED_GRAPH_LAUNCH, stream, "cuGraphLaunch");
}
Operation issued(Call<"cuMemcpyHtoDAsync">, CUdeviceptr, const void*, std::size_t bytes, CUstream stream) {
    return operation(BASCULE_EMULATED_COPY, stream, "cuMemcpyHtoDAsync", bytes);
}
Operation issued(Call<"cuMemcpyDtoHAsync">, void*, CUdeviceptr, std::size_t bytes, CUstream stream) {
    return operation(BASCULE_EMULATED_COPY, stream, "cuMemcpyDtoHAsync", bytes);
}
Operation issued(Call<"cuMemcpyDtoDAsync">, CUdeviceptr, CUdeviceptr, std::size_t bytes, CUstream stream) {
    return operation(BASCULE_EMULATED_COPY, stream, "cuMemcpyDtoDAsync", bytes);
}
Operation issued(Call<"cuMemsetD8Async">, CUdeviceptr, unsigned char, std::size_t count, CUstream stream) {
    return operation(BASCULE_EMULATED_FILL, stream, "cuMemsetD8Async", count);
}
Operation issued(Call<"cuMemsetD16Async">, CUdeviceptr, unsigned short, std::size_t count, CUstream stream) {
    return operation(BASCULE_EMULATED_FILL, stream, "cuMemsetD16Async", 2 * count);
}
Operation issued(Call<"cuMemsetD32Async">, CUdeviceptr, unsigned, std::size_t count, CUstream stream) {
    return operation(BASCULE_EMULATED_FILL, stream, "cuMemsetD32Async", 4 * count);
}
Operation issued(Call<"cuMemFree">, CUdeviceptr) {
    return operation(BASCULE_EMULATED_FREE, nullptr, "cuMemFree");
}
Operation issued(Call<"cuMemFreeHost">, void*) {
    return operation(BASCULE_EMULATED_FREE, nullptr, "cuMemFree");
}
Operation issued(Call<"cuMemFreeAsync">, CUdeviceptr, CUstream stream) {
    return operation(BASCULE_EMULATED_FREE, stream, "cuMemFreeAsync");
}
Operation issued(Call<"cuStreamSynchronize">, CUstream stream) {
    return operation(BASCULE_EMULATED_SYNCHRONIZE, stream, "cuStreamSynchronize");
}
Operation issued(Call<"cuEventSynchronize">, CUevent event) {
    return operation(BASCULE_EMULATED_SYNCHRONIZE, nullptr, "cuEventSynchronize", 0, event);
}
Operation issued(Call<"cuCtxSynchronize">) {
    return operation(BASCULE_EMULATED_SYNCHRONIZE, nullptr, "cuCtxSynchronize");
}
Operation issued(Call<"cuStreamDestroy">, CUstream stream) {
    return operation(BASCULE_EMULATED_DESTROY, stream, "cuStreamDestroy");
}
Operation issued(Call<"cuEventDestroy">, CUevent event) {
    return operation(BASCULE_EMULATED_DESTROY, nullptr, "cuEventDestroy", 0, event);
}
Operation issued(Call<"cuLibraryUnload">, CUlibrary) {
    return operation(BASCULE_EMULATED_DESTROY, nullptr, "cuLibraryUnload");
}
template <FunctionName name, class... Arguments>
Operation issued(Call<name>, const Arguments&...) {
    return {};  // no operation
}

Operation made(Call<"cuMemAlloc">, CUdeviceptr*, std::size_t bytes) {
    return operation(BASCULE_EMULATED_ALLOCATE, nullptr, "cuMemAlloc", bytes);
}
Operation made(Call<"cuMemAllocManaged">, CUdeviceptr*, std::size_t bytes, unsigned) {
    return operation(BASCULE_EMULATED_ALLOCATE, nullptr, "cuMemAlloc", bytes);
}
Operation made(Call<"cuMemHostAlloc">, void**, std::size_t bytes, unsigned) {
    return operation(BASCULE_EMULATED_ALLOCATE, nullptr, "cuMemAlloc", bytes);
}
Operation made(Call<"cuMemAllocFromPoolAsync">, CUdeviceptr*, std::size_t bytes, CUmemoryPool,
               CUstream stream) {
    return operation(BASCULE_EMULATED_ALLOCATE, stream, "cuMemAllocFromPoolAsync", bytes);
}
Operation made(Call<"cuStreamCreateWithPriority">, CUstream* stream, unsigned, int) {
    return operation(BASCULE_EMULATED_CREATE, *stream, "cuStreamCreate");
}
Operation made(Call<"cuEventCreate">, CUevent* event, unsigned) {
    return operation(BASCULE_EMULATED_CREATE, nullptr, "cuEventCreate", 0, *event);
}
Operation made(Call<"cuLibraryGetKernel">, CUkernel* kernel, CUlibrary, const char* name) {
    kernel_names().set(number_of(*kernel), name);
    return {};
}
Operation made(Call<"cuKernelGetFunction">, CUfunction* function, CUkernel kernel) {
    kernel_names().set(number_of(*function), kernel_names().get(number_of(kernel)));
    return {};
}
Operation made(Call<"cuLibraryLoadData">, CUlibrary*, const void*, CUjit_option*, void**, unsigned,
               CUlibraryOption*, void**, unsigned) {
    return operation(BASCULE_EMULATED_CREATE, nullptr, "cuLibraryLoadData");
}
template <FunctionName name, class... Arguments>
Operation made(Call<name>, const Arguments&...) {
    return {};
}

class Recorder {
  public:
    static Recorder& get() {
        static Recorder& recorder = *new Recorder;
        return recorder;
    }

    /// Adds an operation; its place, so that one that failed can be removed again.
    std::optional<std::size_t> add(Operation operation) {
        if (operation.kind == 0 || !on_.load(std::memory_order_relaxed) || Bookkeeping::active())
            return std::nullopt;
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
    std::map<std::string_view, std::atomic<std::uint64_t>> calls;  // its keys are fixed once it is made

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

Recorder* the_recorder = nullptr;  // written before the table is, whose functions alone read it

/// What stands in the table in place of an entry: counts the call and records its operation.
template <class Function>
struct Recorded;

template <class... Arguments>
struct Recorded<CUresult (*)(Arguments...)> {
    template <FunctionName name, auto member>
    struct Entry {
        static inline std::atomic<std::uint64_t>* count = nullptr;

        static CUresult call(Arguments... arguments) {
            Recorder& recorder = *the_recorder;
            count->fetch_add(1, std::memory_order_relaxed);
            const std::optional<std::size_t> place = recorder.add(issued(Call<name>(), arguments...));
            const CUresult result = (recorder.real().*member).pointer(arguments...);
            if (result == CUDA_SUCCESS)
                recorder.add(made(Call<name>(), arguments...));
            else if (place)
                recorder.remove(*place);
            return result;
        }
    };
};

Recorder::Recorder() : real_(Driver::get().api()) {
    the_recorder = this;
    auto& table = const_cast<DriverFunctions&>(Driver::get().api());
#define RECORD(function, version)                                                                            \
    if (table.function) {                                                                                    \
        using Wrapped = Recorded<PFN_##function##_v##version>::Entry<#function, &DriverFunctions::function>; \
        Wrapped::count = &calls[#function];                                                                  \
        table.function.pointer = &Wrapped::call;                                                             \
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
