// Reads the arguments of a launch into an ArgumentPack, or into values if the arguments choose the function.
#pragma once

#include <bascule/runtime/driver/home_device.hpp>

#include "exchange/dlpack_exchange.hpp"
#include "launch/launch_plan.hpp"
#include "support/owners.hpp"

namespace bascule::python {

/// The state of reading the arguments of one launch. Not thread-safe.
struct Reading {
    /// `stream` is the launch's stream, or null if it is not known yet; borrowed. Producers with `__dlpack__` are asked to make
    /// their arrays ready for it. If it is null, the first array that belongs to one device decides the launch's device.
    Reading(Device device, OwnerList& the_owners, const StreamRef* the_stream,
            const LaunchOptions* the_options) noexcept
        : home{device, the_stream != nullptr, the_stream != nullptr,
               the_options != nullptr && the_options->peer},
          owners(the_owners),
          stream(the_stream),
          options(the_options) {}
    Reading(Reading&&) = delete;

    Home home;  ///< the launch's device, final once all arguments are read
    OwnerList& owners;
    const StreamRef* stream;  ///< null: not known
    const LaunchOptions* options;
    WorkStream work_stream{};
    struct Buffers {
        ~Buffers() {
            for (Py_buffer& each : all) PyBuffer_Release(&each);
        }
        std::vector<Py_buffer> all;
    };
    std::unique_ptr<Buffers> buffers;  ///< values borrow from these; null if there are none
};

/// Reads one argument per parameter, each once, into the pack, which checks them. Throws: ArgumentError that names the
/// parameter; a producer's own exception unchanged.
void read_arguments(Reading& reading, ArgumentPack& pack, PyObject* const* arguments);

/// Reads one argument. The result borrows from `reading`. `parameter` is what is known of the parameter before the
/// function is chosen. Throws: as read_arguments.
ArgumentValue read_argument(Reading& reading, PyObject* argument, int index, const Parameter& parameter);

/// Checks a tensor that the chosen function may write to: it must not require a gradient. read_argument cannot check
/// this, because the function is not chosen yet. Throws: as read_arguments.
void check_chosen(PyObject* argument, int index, const Parameter& parameter);

}  // namespace bascule::python
