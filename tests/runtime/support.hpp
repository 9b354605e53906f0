// Shared by several of these tests: small programs, arrays on the device, and traces of the driver's operations.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <bascule/interface/arguments/argument.hpp>
#include <bascule/interface/arrays/array_interface.hpp>
#include <bascule/interface/types/dtype.hpp>
#include <bascule/runtime/driver/driver.hpp>
#include <bascule/runtime/driver/emulated_device.hpp>
#include <bascule/runtime/kernels/kernel.hpp>
#include <bascule/runtime/memory/memory.hpp>
#include <bascule/runtime/streams/stream.hpp>

namespace bascule::testing {

/// A module from a text, compiled through the process's own cache.
struct TestModule {
    explicit TestModule(std::string text) : module(source_of(std::move(text))) {}
    static Source source_of(std::string text) {
        Source source;
        source.text = std::move(text);
        source.name = "test.cu";
        return source;
    }
    Module module;
};

/// A release function for owners that point to counters: increments each.
template <class Count>
void count_releases(void* const* counters, std::size_t count) noexcept {
    for (std::size_t i = 0; i < count; ++i) ++*static_cast<Count*>(counters[i]);
}

inline Scalar integer(std::int64_t value) {
    Scalar scalar;
    scalar.integer = value;
    return scalar;
}

inline Scalar real(double value) {
    Scalar scalar;
    scalar.kind = Scalar::Kind::floating;
    scalar.floating = value;
    return scalar;
}

/// The buffer as a float array on `stream`; 0 names no stream.
inline ArrayView floats(const DeviceBuffer& buffer, std::uint64_t stream = 0) {
    RawInterface raw;
    raw.shape.push_back(static_cast<std::int64_t>(buffer.bytes() / sizeof(float)));
    raw.typestr = "<f4";
    raw.pointer = buffer.address();
    if (stream != 0) raw.stream = stream;
    return validate(raw);
}

inline std::vector<float> counting(std::size_t count) {
    std::vector<float> values(count);
    for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>(i);
    return values;
}

inline DeviceBuffer on_device(StreamRef stream, const std::vector<float>& values) {
    DeviceBuffer buffer(values.size() * sizeof(float), stream.device());
    copy_to_device(stream, buffer.address(), values.data(), buffer.bytes());
    return buffer;
}

inline std::vector<float> on_host(StreamRef stream, const DeviceBuffer& buffer) {
    std::vector<float> values(buffer.bytes() / sizeof(float));
    copy_to_host(stream, values.data(), buffer.address(), buffer.bytes());
    return values;
}

/// A kernel that adds two arrays into a third, the arrays, and three streams with their names in a trace.
struct Addition {
    TestModule program{
        "__global__ void add(const float* x, const float* y, float* z, int n) {    int i = blockIdx.x * "
        "blockDim.x + threadIdx.x;    if (i < n) z[i] = x[i] + y[i];}"};
    Kernel kernel = program.module.kernel("add");
    Device device{0};
    DeviceBuffer x{256}, y{256}, z{256};
    Stream launch_stream, p, q;
    std::map<std::uint64_t, std::string> names{
        {launch_stream.ref().handle(), "C"}, {p.ref().handle(), "p"}, {q.ref().handle(), "q"}};

    /// Sets all arguments of the kernel, with the streams that the arrays name; 0 names none.
    void set(ArgumentPack& args, std::uint64_t of_x, std::uint64_t of_y, std::uint64_t of_z) {
        args.set(0, floats(x, of_x));
        args.set(1, floats(y, of_y));
        args.set(2, floats(z, of_z));
        args.set(3, integer(64));
    }
};

/// The event records, waits and launches during its lifetime, as text like that of the rules: "R(e1,p) W(e1,C) L(C)".
/// Streams have the given names, events are numbered by their first appearance.
class OperationTrace {
  public:
    OperationTrace() : emulated_(*Driver::get().emulated_functions()) { emulated_.trace(1); }
    ~OperationTrace() { emulated_.trace(0); }
    OperationTrace(const OperationTrace&) = delete;
    OperationTrace& operator=(const OperationTrace&) = delete;

    std::string spelled(const std::map<std::uint64_t, std::string>& names) const {
        return spelled(names, [](std::uint64_t) { return true; });
    }
    /// The text for the operations on these streams alone, such as those of one thread.
    std::string spelled_on(const std::map<std::uint64_t, std::string>& names) const {
        return spelled(names, [&](std::uint64_t stream) { return names.count(stream) != 0; });
    }

  private:
    template <class Wanted>
    std::string spelled(const std::map<std::uint64_t, std::string>& names, const Wanted& wanted) const {
        std::vector<BasculeEmulatedOperation> operations(emulated_.trace_read(nullptr, 0));
        emulated_.trace_read(operations.data(), operations.size());
        std::map<std::uint64_t, std::string> events;
        std::string text;
        for (const BasculeEmulatedOperation& operation : operations) {
            const bool is_launch = operation.kind == BASCULE_EMULATED_LAUNCH;
            const bool is_record = operation.kind == BASCULE_EMULATED_RECORD;
            if (!is_launch && !is_record && operation.kind != BASCULE_EMULATED_WAIT) continue;
            if (!wanted(operation.stream)) continue;
            const auto name = names.find(operation.stream);
            const std::string stream = name == names.end() ? std::to_string(operation.stream) : name->second;
            if (!text.empty()) text += ' ';
            if (is_launch) {
                text += "L(" + stream + ")";
                continue;
            }
            const auto event = events.emplace(operation.event, "e" + std::to_string(events.size() + 1)).first;
            text += (is_record ? "R(" : "W(") + event->second + "," + stream + ")";
        }
        return text;
    }

    const EmulatedFunctions& emulated_;
};

/// Counts the calls of a driver function that an action makes.
template <typename Action>
std::uint64_t calls_of(const char* function, Action&& action) {
    const EmulatedFunctions& emulated = *Driver::get().emulated_functions();
    const std::uint64_t before = emulated.call_count(function);
    action();
    return emulated.call_count(function) - before;
}

}  // namespace bascule::testing
