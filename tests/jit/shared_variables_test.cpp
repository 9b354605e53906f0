#include <map>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <bascule/jit/link/shared_variables.hpp>

#include "support.hpp"

namespace bascule::testing {
namespace {

constexpr const char* code = R"(.version 8.0
.target sm_80
.address_size 64
.extern .func (.param .b32 r) vprintf (.param .b64 a, .param .b64 b);
.visible .global .align 4 .u32 n = 5;
.const .align 4 .b8 table[16];
.const .align 4 .f32 other;
.global .attribute(.managed) .align 4 .f32 level;
.global .align 8 .u64 pointer[2] = {generic(n)+4, n};
.global .align 1 .b8 packed[2] = {0xFF(generic(n)), 0xFF00(generic(n)+1)};
.global .align 8 .u64 call_it = helper;
.global .align 1 .b8 $str[3] = {37, 100};
.global .align 1 .b8 __unnamed_1[3] = {37, 100};
.global .align 4 .b8 switch_$_table_$_k[4] = {1, 2, 3, 4};
.global .align 8 .u64 _ZTV1V[3] = {0, 0, helper};
.visible .global .align 4 .u32 unused;
.func (.param .b32 r) helper (.param .b64 a) {
	.reg .b64 %rd<3>;
	mov.u64 %rd1, table; // as n is
	ld.const.v2.u32 {%r1, %r2}, [%rd1+8];
	cvta.const.u64 %rd2, %rd1;
	ret;
}
.visible .entry k() {
	.reg .b32 %r<9>;
	ld.global.u32 %r1, [n];
	{
	@%p1 st.global.u32 [n+4], %r1;
	}
	ld.const.f32 %f1, [other];
	mov.u64 %rd4, pointer; mov.u64 %rd5, packed; mov.u64 %rd6, call_it; mov.u64 %rd7, $str;
	ld.global.f32 %f2, [level];
	ret;
}
.section .debug_info { .b64 n }
)";

const PtxVariable* find(const std::vector<PtxVariable>& variables, const std::string& name) {
    const auto found = std::ranges::find(variables, name, &PtxVariable::name);
    return found == variables.end() ? nullptr : &*found;
}

}  // namespace

TEST_CASE("variables of PTX are those that a person declared, with what matters where they are shared") {
    const std::vector<PtxVariable> variables = variables_of(code);
    CHECK(variables.size() == 8);
    for (const char* const name : {"$str", "__unnamed_1", "switch_$_table_$_k", "_ZTV1V"})
        CHECK(find(variables, name) == nullptr);
    const PtxVariable* const n = find(variables, "n");
    REQUIRE(n != nullptr);
    CHECK((n->is_used && n->has_value && !n->is_constant && !n->points_to_function));
    CHECK(find(variables, "table")->is_constant);
    CHECK_FALSE(find(variables, "table")->has_value);
    CHECK((find(variables, "call_it")->points_to_function && find(variables, "call_it")->is_only_read));
    CHECK_FALSE(find(variables, "pointer")->points_to_function);
    CHECK_FALSE(find(variables, "unused")->is_used);
}

TEST_CASE("what used a variable uses the address in its place, and its definition is gone") {
    const std::string shared = with_addresses(code, {{"n", 0x7f0012345678}});
    CHECK_FALSE(contains(shared, ".u32 n"));
    CHECK(contains(shared, "mov.b64 \t%bascule_variable1, 139638282147448;"));
    CHECK(contains(shared, "ld.global.u32 %r1, [%bascule_variable1];"));
    CHECK(contains(shared, "@%p1 st.global.u32 [%bascule_variable1+4], %r1;"));
    CHECK(contains(shared, "pointer[2] = {139638282147448+4, 139638282147448};"));
    CHECK(contains(shared, "packed[2] = {0xFF(139638282147448), 0xFF00(139638282147448+1)};"));
    CHECK(contains(shared, ".section .debug_info { .b64 139638282147448 }"));
    CHECK(contains(shared, "ld.const.f32 %f1, [other];"));  // constants stay constants
    CHECK(contains(shared, ".func (.param .b32 r) helper (.param .b64 a) {\n\t.reg .b64 %rd<3>;"));
}

TEST_CASE("a register of inline PTX may have the name of a variable") {
    const std::string shared = with_addresses(
        ".version 8.0 .target sm_80 .global .u32 p; .entry k() { { .reg .u32 q, p; mov.u32 p, 1; ld.global.u32 q, [p]; } "
        "ld.global.u32 %r1, [p]; }",
        {{"p", 4096}});
    CHECK(contains(shared, "mov.u32 p, 1; ld.global.u32 q, [p]; } ld.global.u32 %r1, [%bascule_variable1];"));
}

TEST_CASE("where a constant is shared, all constants of the image are read as global memory") {
    const std::string shared = with_addresses(code, {{"table", 4096}});
    CHECK_FALSE(contains(shared, ".const"));
    CHECK(contains(shared, ".global .align 4 .f32 other;"));
    CHECK(contains(shared, "mov.u64 %rd1, 4096;"));
    CHECK(contains(shared, "ld.global.v2.u32 {%r1, %r2}, [%rd1+8];"));
    CHECK(contains(shared, "cvta.global.u64 %rd2, %rd1;"));
    CHECK(contains(shared, ".visible .global .align 4 .u32 n = 5;"));
}

}  // namespace bascule::testing
