#include <utility>

#include <bascule/jit/lookup/image_record.hpp>

namespace bascule {

// Record calls these functions and finds them by argument-dependent look-up.

BASCULE_RECORD(Arch, its.major, its.minor, its.suffix, its.is_virtual)
template <class R>
void pass_members(R& record, DType& dtype) {
    record.template choice<DType::Kind::bit>(dtype.kind);
    record.template choice<DType::Format::uint4>(dtype.format);
    record.template choice<DType::TimeUnit::as>(dtype.unit);
    record.BASCULE_MEMBERS(dtype.itemsize, dtype.count);
}
BASCULE_RECORD(ViewLayout::Slot, its.axis, its.offset)
BASCULE_RECORD(ViewLayout, its.pointer, its.index_bytes, its.extents, its.strides)
template <class R>
void pass_members(R& record, ParameterType& type) {
    record.template choice<ParameterType::Kind::untyped>(type.kind);
    record.template choice<ParameterType::Image::surface>(type.image);
    record.template choice<ParameterType::Element::function>(type.element_kind);
    record.template choice<ParameterType::Order::strided>(type.order);
    record.BASCULE_MEMBERS(type.dtype, type.lanes, type.row, type.character, type.constant, type.rank,
                           type.alignment, type.element, type.index, type.static_extents, type.layout);
}
BASCULE_RECORD(Parameter, its.name, its.spelling, its.type, its.bytes, its.alignment, its.offset, its.plain,
               its.tag.kernel, its.tag.parameter)
BASCULE_RECORD(Signature, its.kernel, its.parameters, its.bytes, its.defaults)
BASCULE_RECORD(KernelImage, its.name, its.expression, its.lowered_name, its.reflected, its.line,
               its.signature)
BASCULE_RECORD(Image, its.arch, its.log, its.ptx, its.cubin, its.kernels, its.absent, its.nvrtc_version,
               its.compile_milliseconds)

void write_image(ByteWriter& out, const Image& image) {
    Image copy = image;  // because Record takes non-const references, into which a reader writes
    Record(out).pass(copy);
}

std::optional<Image> read_image(ByteReader in) {
    Image image;
    Record(in).pass(image);
    return in.at_end() ? std::optional(std::move(image)) : std::nullopt;
}

std::string image_format() {
    FormatText text;
    Image image;
    Record(text).pass(image);
    return std::move(text).take();
}

}  // namespace bascule
