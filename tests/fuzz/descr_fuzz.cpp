// Any nested `descr` becomes a layout whose fields are in order inside the structure, or an ArgumentError; and a layout
// becomes CUDA C++, or an ArgumentError.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <set>
#include <string>
#include <vector>

#include <bascule/interface/errors/error.hpp>
#include <bascule/interface/types/struct_layout.hpp>
#include <bascule/interface/types/struct_source.hpp>

#include "bytes.hpp"

namespace {

using bascule::fuzz::Bytes;

constexpr std::string_view typestrs[] = {"<f4", "<f8", "|u1", "<c16", "|V3", "|V999999999", "<M8[25s]",
                                         "<f2", "<f1", ">f4", "|O8",  "|V0", "<V2"};
constexpr std::string_view names[] = {"", "a", "b", "class", "Record", "padding_0", "c", "a b"};

std::vector<bascule::DescrEntry> entries(Bytes& bytes, int depth) {
    std::vector<bascule::DescrEntry> list(bytes.below(5));
    for (bascule::DescrEntry& entry : list) {
        entry.name = bytes.one_of(names);
        if (depth < 5 && bytes.below(4) == 0) {
            entry.nested = entries(bytes, depth + 1);
        } else {
            entry.typestr = bytes.one_of(typestrs);
        }
        const std::uint32_t extents = bytes.below(6);
        for (std::uint32_t d = 3; d < extents; ++d) entry.shape.push_back(bytes.extent());
    }
    return list;
}

/// 128-bit integers, for a total size that cannot overflow. `unknown`: an extent is negative or the total is too large.
__extension__ using Wide = __int128;
constexpr Wide unknown = -1;

Wide bytes_of(const std::vector<bascule::DescrEntry>& list) {
    Wide total = 0;
    for (const bascule::DescrEntry& entry : list) {
        Wide size = 0;
        if (entry.typestr.empty()) {
            size = bytes_of(entry.nested);
        } else {
            try {
                size = bascule::parse_typestr(entry.typestr).itemsize;
            } catch (const bascule::ArgumentError&) {
                return unknown;
            }
        }
        if (size == unknown) return unknown;
        // An extent of 0 makes it 0 bytes, however large the others are.
        if (std::ranges::find(entry.shape, 0) != entry.shape.end()) size = 0;
        for (const std::int64_t extent : entry.shape) {
            if (extent < 0 || size > Wide{1} << 60) return unknown;
            size *= extent;
        }
        total += size;
        if (total > Wide{1} << 60) return unknown;
    }
    return total;
}

void check(const std::vector<bascule::StructField>& fields, std::uint64_t bytes) {
    std::uint64_t end = 0;
    std::set<std::string> seen;
    for (const bascule::StructField& field : fields) {
        if (field.name.empty() || !seen.insert(field.name).second) std::abort();
        if (field.offset < end) std::abort();
        end = field.offset + field.bytes();
        if (!field.nested.empty()) check(field.nested, field.dtype.itemsize);
    }
    if (end > bytes) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    Bytes input{data, size};
    const bool guess = input.flag();
    const auto claimed = input.take<std::uint32_t>();
    const std::vector<bascule::DescrEntry> list = entries(input, 0);
    const Wide total = bytes_of(list);
    const bool fits = total >= 0 && total < Wide{1} << 32;
    const std::uint32_t bytes = guess || !fits ? claimed : static_cast<std::uint32_t>(total);
    try {
        const bascule::StructLayout layout = bascule::parse_descr(list, bytes);
        if (layout.bytes != bytes || total != bytes) std::abort();
        check(layout.fields, bytes);
        if (bascule::to_string(layout).empty()) std::abort();
        if (!(layout == bascule::parse_descr(list, bytes))) std::abort();
        bascule::is_sequence_of(layout, {bascule::DType::Kind::floating, 4}, 2);
        if (bascule::struct_source(layout, "Record").find("struct Record {") == std::string::npos)
            std::abort();
    } catch (const bascule::ArgumentError& error) {
        if (error.details().field.empty() || std::string_view(error.what()).empty()) std::abort();
    }
    return 0;
}
