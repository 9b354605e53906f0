// Images as bytes.
#pragma once

#include <optional>
#include <string>

#include <bascule/jit/compile/image.hpp>
#include <bascule/jit/files/record.hpp>

namespace bascule {

void write_image(ByteWriter& out, const Image& image);
/// Returns nothing unless the rest of `in` is one image.
std::optional<Image> read_image(ByteReader in);
/// The kinds and names of all members. It differs between builds whose members differ.
std::string image_format();

}  // namespace bascule
