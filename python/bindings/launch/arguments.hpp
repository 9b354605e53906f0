// From Python arguments to an ArgumentPack: which kind of thing each one is. Whether it fits is the pack's to
// say.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <bascule/interface/arguments/argument.hpp>
#include <bascule/runtime/driver/home_device.hpp>
#include <bascule/runtime/streams/stream.hpp>

#include "arrays/array_object.hpp"
#include "classes/collected.hpp"
#include "launch/launch_plan.hpp"
#include "support/owners.hpp"
#include "support/pybind.hpp"
#include "types/type_profile.hpp"

namespace bascule::python {

struct WorkStream;

/// bascule.raw_pointer(address).
struct RawPointerObject {
    std::uint64_t address = 0;
};

/// bascule.raw_bytes(buffer): the bytes as they were then.
struct RawBytesObject {
    pybind11::bytes bytes;

    void visit_references(ReferenceVisitor& each) { each.only_look_at(bytes.ptr()); }
};

/// Reads the arguments of one launch, each once. Arrays join `owners`; what was borrowed from buffers stays
/// valid while this lives.
class ArgumentReader {
  public:
    /// `stream` is the launch's, where it is known, and stays where it is: what producers by `__dlpack__` are asked to be ready for.
    /// Where it is not, the first array that lies on one device decides where the launch goes.
    ArgumentReader(Device device, OwnerList& owners, const StreamRef* stream,
                   const LaunchOptions* options) noexcept
        : home_{device, stream != nullptr, stream != nullptr, options != nullptr && options->peer},
          owners_(&owners),
          stream_(stream),
          options_(options) {}
    ArgumentReader(const ArgumentReader&) = delete;
    ArgumentReader& operator=(const ArgumentReader&) = delete;

    /// What `argument` is. `parameter` is for messages, and says whether bytes are wanted. Throws:
    /// ArgumentError naming the parameter; a producer's own exception unchanged.
    ArgumentValue read(PyObject* argument, int index, const Parameter& parameter);
    /// What `read` could not ask before the arguments had chosen the function. Throws as it.
    void check_chosen(PyObject* argument, int index, const Parameter& parameter);
    /// The same for all arguments, one a parameter, into the pack, which checks them. Throws: as `read`, and as the pack.
    void read_all(ArgumentPack& pack, PyObject* const* arguments);

    /// Where the launch goes, once every argument was read.
    Device device() const noexcept { return home_.device; }

  private:
    ArgumentValue read_any(PyObject* argument, const Parameter& parameter,
                           const std::string* absence = nullptr);
    StreamRef consumer() const;
    void find_order(PyObject* argument, const Parameter& parameter, ArrayView& view);
    void keep_own(PyObject* argument, const ArrayObject& own);
    ArrayView own_view(const ArrayObject& own);
    ImageArgument read_image(PyObject* argument, const Parameter& parameter);
    void read_into(ArgumentPack& pack, int index, const Parameter& parameter, PyObject* argument,
                   WorkStream& work_stream);
    void set_int(ArgumentPack& pack, int index, const Parameter& parameter, PyObject* argument);
    void set_other(ArgumentPack& pack, int index, const Parameter& parameter, PyObject* argument,
                   WorkStream& work_stream);
    bool takes_plainly(const PlainArray& plain, const Parameter& parameter);
    void set_taken(ArgumentPack& pack, int index, const Parameter& parameter, PyObject* argument,
                   const PlainArray& plain);
    bool set_by_attributes(ArgumentPack& pack, int index, const Parameter& parameter, PyObject* argument);
    void set_by_interface(ArgumentPack& pack, int index, const Parameter& parameter, PyObject* argument,
                          RememberedType& known);
    void set_by_descriptor(ArgumentPack& pack, int index, const Parameter& parameter, PyObject* argument,
                           PyObject* descriptor);
    void set_by_rules(ArgumentPack& pack, int index, const Parameter& parameter, PyObject* argument);
    void set_without_interface(ArgumentPack& pack, int index, const Parameter& parameter, PyObject* argument);
    bool read_by_table(PyObject* argument, const TypeProfile& profile, const Parameter& parameter,
                       ArrayView& view);
    ArgumentValue read_foreign(PyObject* argument, const Parameter& parameter, const std::string* absence);
    ArrayView read_array(PyObject* argument, PyObject* descriptor, const Parameter& parameter);
    void read_mask_for(PyObject* argument, const Parameter& parameter, const pybind11::object& mask,
                       ArrayView& view);
    std::optional<ArgumentValue> read_value(PyObject* argument, const Parameter& parameter,
                                            std::string& unread);
    std::optional<TupleArgument::Element> read_element(PyObject* element, const Parameter& parameter);
    std::optional<TupleArgument> read_tuple_for(PyObject* argument, const Parameter& parameter,
                                                std::string& unread);
    bool read_bytes(PyObject* argument, RawBytes& bytes);
    ArgumentValue read_void(PyObject* argument);
    ArgumentValue read_ctypes(PyObject* argument);
    ArgumentValue read_structure(PyObject* argument, const pybind11::object& dtype, LayoutSource source);

    Home home_;
    OwnerList* owners_;
    const StreamRef* stream_;  // null: not known
    const LaunchOptions* options_;
    struct Buffers {
        ~Buffers() {
            for (Py_buffer& each : all) PyBuffer_Release(&each);
        }
        std::vector<Py_buffer> all;
    };
    std::unique_ptr<Buffers> buffers_;  // null without any
};

}  // namespace bascule::python
