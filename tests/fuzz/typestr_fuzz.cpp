// Parses any bytes as a typestr. The result must be an ArgumentError, or a dtype that stays the same when it is written
// as a typestr and parsed again.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include <bascule/interface/errors/error.hpp>
#include <bascule/interface/types/dtype.hpp>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    try {
        const bascule::DType dtype = bascule::parse_typestr({reinterpret_cast<const char*>(data), size});
        if (dtype.itemsize == 0 || bascule::parse_typestr(bascule::to_typestr(dtype)) != dtype) std::abort();
        if (bascule::to_string(dtype).empty() || dtype.alignment() > 16) std::abort();
    } catch (const bascule::ArgumentError& error) {
        if (error.details().field != "typestr") std::abort();
    }
    return 0;
}
