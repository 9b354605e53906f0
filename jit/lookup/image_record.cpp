#include <utility>

#include <bascule/jit/files/record.hpp>
#include <bascule/jit/lookup/image_record.hpp>

namespace bascule {

// Called by Record, found by argument-dependent look-up.

template <class R>
void pass_members(R& record, Arch& arch) {
    record.BASCULE_MEMBERS(arch.major, arch.minor, arch.suffix, arch.is_virtual);
}
template <class R>
void pass_members(R& record, DType& dtype) {
    record.template choice<DType::Kind::bit>(dtype.kind);
    record.template choice<DType::Format::uint4>(dtype.format);
    record.template choice<DType::TimeUnit::as>(dtype.unit);
    record.BASCULE_MEMBERS(dtype.itemsize, dtype.count);
}
template <class R>
void pass_members(R& record, ViewLayout::Slot& slot) {
    record.BASCULE_MEMBERS(slot.axis, slot.offset);
}
template <class R>
void pass_members(R& record, ViewLayout& layout) {
    record.BASCULE_MEMBERS(layout.pointer, layout.index_bytes, layout.extents, layout.strides);
}
template <class R>
void pass_members(R& record, ParameterType& type) {
    record.template choice<ParameterType::Kind::untyped>(type.kind);
    record.template choice<ParameterType::Image::surface>(type.image);
    record.template choice<ParameterType::Element::function>(type.element_kind);
    record.template choice<ParameterType::Order::strided>(type.order);
    record.BASCULE_MEMBERS(type.dtype, type.lanes, type.row, type.character, type.constant, type.rank,
                           type.alignment, type.element, type.index, type.static_extents, type.layout);
}
template <class R>
void pass_members(R& record, Parameter& parameter) {
    record.BASCULE_MEMBERS(parameter.name, parameter.spelling, parameter.type, parameter.bytes,
                           parameter.alignment, parameter.offset, parameter.plain, parameter.tag.kernel,
                           parameter.tag.parameter);
}
template <class R>
void pass_members(R& record, Signature& signature) {
    record.BASCULE_MEMBERS(signature.kernel, signature.parameters, signature.bytes, signature.defaults);
}
template <class R>
void pass_members(R& record, KernelImage& kernel) {
    record.BASCULE_MEMBERS(kernel.name, kernel.expression, kernel.lowered_name, kernel.reflected, kernel.line,
                           kernel.signature);
}
template <class R>
void pass_members(R& record, Image& image) {
    record.BASCULE_MEMBERS(image.arch, image.log, image.ptx, image.cubin, image.kernels, image.absent,
                           image.nvrtc_version, image.compile_milliseconds);
}

void write_image(ByteWriter& out, const Image& image) {
    Image copy = image;  // because a Record takes members as a reader needs them
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
