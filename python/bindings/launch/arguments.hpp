// The arguments of a launch: from Python's objects to an ArgumentPack, or to values where the arguments choose the function.
#pragma once

#include <memory>
#include <vector>

#include <bascule/interface/arguments/argument.hpp>
#include <bascule/runtime/driver/home_device.hpp>
#include <bascule/runtime/streams/stream.hpp>

#include "exchange/dlpack_exchange.hpp"
#include "launch/launch_plan.hpp"
#include "support/owners.hpp"
#include "support/pybind.hpp"

namespace bascule::python {

/// What the arguments of one launch are read for, and what they have said so far. Not thread-safe.
struct Reading {
    /// `stream` is the launch's, where it is known, and stays where it is: what producers by `__dlpack__` are asked to be ready for.
    /// Where it is not, the first array that lies on one device decides where the launch goes.
    Reading(Device device, OwnerList& the_owners, const StreamRef* the_stream,
            const LaunchOptions* the_options) noexcept
        : home{device, the_stream != nullptr, the_stream != nullptr,
               the_options != nullptr && the_options->peer},
          owners(the_owners),
          stream(the_stream),
          options(the_options) {}
    Reading(Reading&&) = delete;

    Home home;  ///< where the launch goes, once every argument was read
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
    std::unique_ptr<Buffers> buffers;  ///< what values borrow from; null without any
};

/// Reads each argument once, one a parameter, into the pack, which checks them. Throws: ArgumentError naming the parameter;
/// a producer's own exception unchanged.
void read_arguments(Reading& reading, ArgumentPack& pack, PyObject* const* arguments);

/// Reads one argument, which borrows from `reading`. `parameter` is for messages, and says whether bytes are wanted. Throws: as
/// read_arguments.
ArgumentValue read_argument(Reading& reading, PyObject* argument, int index, const Parameter& parameter);

/// What read_argument could not ask before the arguments had chosen the function. Throws: as read_arguments.
void check_chosen(PyObject* argument, int index, const Parameter& parameter);

}  // namespace bascule::python
