// PTX syntax, a line for each variant, from the instruction pages of the PTX ISA; and its expansion.
#include "reference/grammar.hpp"

#include <stdexcept>

namespace reference {
namespace {

struct Set {
    std::string_view name, members;
};
constexpr Set sets[] = {
    {"int", ".u16|.u32|.u64|.s16|.s32|.s64"},
    {"narrow", ".u16|.u32|.s16|.s32"},
    {"wide", ".u32|.u64|.s32|.s64"},
    {"word", ".u32|.s32"},
    {"signed", ".s16|.s32|.s64"},
    {"unsigned", ".u16|.u32|.u64"},
    {"bits", ".b16|.b32|.b64"},
    {"half", ".f16|.f16x2|.bf16|.bf16x2"},
    {"scalar", ".b16|.b32|.b64|.u16|.u32|.u64|.s16|.s32|.s64|.f32|.f64"},
    {"memory", ".b8|.b16|.b32|.b64|.u8|.u16|.u32|.u64|.s8|.s16|.s32|.s64|.f32|.f64"},
    {"upto32", ".b8|.b16|.b32|.u8|.u16|.u32|.s8|.s16|.s32|.f32"},
    {"integer8", ".u8|.u16|.u32|.u64|.s8|.s16|.s32|.s64"},
    {"rnd", ".rn|.rz|.rm|.rp"},
    {"irnd", ".rni|.rzi|.rmi|.rpi"},
    {"order", ".eq|.ne|.lt|.le|.gt|.ge"},
    {"uorder", ".eq|.ne|.lt|.le|.gt|.ge|.lo|.ls|.hi|.hs"},
    {"forder", ".eq|.ne|.lt|.le|.gt|.ge|.equ|.neu|.ltu|.leu|.gtu|.geu|.num|.nan"},
    {"bool", ".and|.or|.xor"},
    {"scope", ".cta|.cluster|.gpu|.sys"},
    {"space", ".global|.shared|.shared::cta|.shared::cluster|.local"},
    {"evict1", ".L1::evict_normal|.L1::evict_unchanged|.L1::evict_first|.L1::evict_last|.L1::no_allocate"},
    {"fp8", ".e4m3|.e5m2"},
    {"tile", ".m16n16k16|.m8n32k16|.m32n8k16"},
    {"share", ".global|.shared|.shared::cta"},
    {"sp", "(.sp|.sp::ordered_metadata)"},
    {"geometry", ".1d|.2d|.3d|.a1d|.a2d"},
    {"cubes", ".cube|.acube"},
    {"texel", ".u32|.s32|.f32"},
    {"outside", ".trap|.clamp|.zero"},
    {"prefetch2", ".L2::64B|.L2::128B|.L2::256B"},
    {"rank", ".1d|.2d|.3d|.4d|.5d"},
};

constexpr Syntax scalar[] = {
    {"(add|sub)($int)"},
    {"(add|sub).sat.s32"},
    {"(add|sub|mul){$rnd}{.ftz}{.sat}.f32"},
    {"(add|sub|mul){$rnd}.f64"},
    {"(add|sub|mul){.rn}{.ftz}{.sat}(.f16|.f16x2)"},
    {"(add|sub|mul){.rn}(.bf16|.bf16x2)"},
    {"mul(.hi|.lo)($int)"},
    {"mul.wide($narrow)"},
    {"mad(.hi|.lo)($int)"},
    {"mad.wide($narrow)"},
    {"(mad|fma)($rnd){.ftz}{.sat}.f32"},
    {"(mad|fma)($rnd).f64"},
    {"fma.rn{.ftz}{.sat|.relu}(.f16|.f16x2)"},
    {"mad(.hi|24.hi).sat.s32"},
    {"(add|min|max)(.u16x2|.s16x2)"},
    {"(min|max).relu(.s32|.s16x2)"},
    {"fma.rn{.relu}(.bf16|.bf16x2)"},
    {"fma.rn.oob{.relu}($half)"},
    {"mul24(.hi|.lo)($word)"},
    {"mad24(.hi|.lo)($word)"},
    {"sad($int)"},
    {"(div|rem)($int)"},
    {"div(.approx|.full|.rn|.rz|.rm|.rp){.ftz}.f32"},
    {"div($rnd).f64"},
    {"(abs|neg)($signed)"},
    {"(abs|neg){.ftz}.f32"},
    {"(abs|neg).f64"},
    {"(abs|neg){.ftz}(.f16|.f16x2)"},
    {"(abs|neg)(.bf16|.bf16x2)"},
    {"(min|max)($int)"},
    {"(min|max){.ftz}{.NaN}{.xorsign.abs}(.f32|.f16|.f16x2)"},
    {"(min|max).f64"},
    {"(min|max){.NaN}{.xorsign.abs}(.bf16|.bf16x2)"},
    {"(add|sub).cc($wide)"},
    {"(addc|subc){.cc}($wide)"},
    {"mad(.hi|.lo).cc($wide)"},
    {"madc(.hi|.lo){.cc}($wide)"},
    {"(popc|clz|brev|bfi)(.b32|.b64)"},
    {"bfind{.shiftamt}($wide)"},
    {"bfe($wide)"},
    {"bmsk(.clamp|.wrap).b32"},
    {"szext(.clamp|.wrap)($word)"},
    {"fns.b32"},
    {"prmt.b32{.f4e|.b4e|.rc8|.ecl|.ecr|.rc16}"},
    {"lop3.b32"},
    {"shf(.l|.r)(.clamp|.wrap).b32"},
    {"shl($bits)"},
    {"shr(.b16|.b32|.b64|$int)"},
    {"dp4a($word)($word)"},
    {"dp2a(.lo|.hi)($word)($word)"},
    {"(and|or|xor|not)(.pred|$bits)"},
    {"cnot($bits)"},
    {"copysign(.f32|.f64)"},
    {"testp(.finite|.infinite|.number|.notanumber|.normal|.subnormal)(.f32|.f64)"},
    {"rcp(.approx|$rnd){.ftz}.f32"},
    {"rcp($rnd).f64"},
    {"rcp.approx.ftz.f64"},
    {"sqrt(.approx|$rnd){.ftz}.f32"},
    {"sqrt($rnd).f64"},
    {"rsqrt.approx{.ftz}(.f32|.f64)"},
    {"(sin|cos|lg2|ex2).approx{.ftz}.f32"},
    {"ex2.approx(.f16|.f16x2)"},
    {"ex2.approx.ftz(.bf16|.bf16x2)"},
    {"tanh.approx(.f32|$half)"},
    {"setp(.eq|.ne){$bool}($bits)"},
    {"setp($order){$bool}($signed)"},
    {"setp($uorder){$bool}($unsigned)"},
    {"setp($forder){$bool}{.ftz}(.f32|.f16|.f16x2)"},
    {"setp($forder){$bool}(.f64|.bf16|.bf16x2)"},
    {"set(.eq|.ne){$bool}(.u32|.s32|.f32|.f16|.bf16)($bits)"},
    {"set($order){$bool}(.u32|.s32|.f32|.f16|.bf16)($signed)"},
    {"set($uorder){$bool}(.u32|.s32|.f32|.f16|.bf16)($unsigned)"},
    {"set($forder){$bool}{.ftz}(.u32|.s32|.f32|.f16).f32"},
    {"set($forder){$bool}.bf16.f32"},
    {"set($forder){$bool}(.u32|.s32|.f32|.f16|.bf16).f64"},
    {"set($forder){$bool}{.ftz}(.f16|.u16|.s16|.u32|.s32).f16"},
    {"set($forder){$bool}(.bf16|.u16|.s16|.u32|.s32).bf16"},
    {"set($forder){$bool}{.ftz}(.f16x2|.u32|.s32).f16x2"},
    {"set($forder){$bool}(.bf16x2|.u32|.s32).bf16x2"},
    {"selp($scalar)"},
    {"slct($scalar).s32"},
    {"slct{.ftz}($scalar).f32"},
    {"mov(.pred|$scalar)"},
    {"cvt($integer8)($integer8)"},
    {"cvt.sat($integer8)($integer8)"},
    {"cvt($irnd){.ftz}{.sat}($integer8).f32"},
    {"cvt($irnd){.sat}($integer8)(.f16|.bf16|.f64)"},
    {"cvt($rnd){.ftz}{.sat}.f32($integer8)"},
    {"cvt($rnd){.sat}(.f16|.f64)($integer8)"},
    {"cvt($rnd).bf16($integer8)"},
    {"cvt{$irnd}{.ftz}{.sat}.f32.f32"},
    {"cvt{$irnd}{.sat}(.f64.f64|.f16.f16)"},
    {"cvt{$irnd}.bf16.bf16"},
    {"cvt($rnd){.ftz}{.sat}.f32.f64"},
    {"cvt($rnd){.sat}.f16.f64"},
    {"cvt($rnd){.ftz}{.sat}.f16.f32"},
    {"cvt($rnd).bf16(.f32|.f64|.f16)"},
    {"cvt($rnd).f16.bf16"},
    {"cvt.f64.bf16"},
    {"cvt{.ftz}{.sat}(.f64.f32|.f32.f16)"},
    {"cvt{.sat}.f64.f16"},
    {"cvt{.ftz}.f32.bf16"},
    {"cvt(.rn|.rz){.relu}{.satfinite}(.f16|.bf16|.f16x2|.bf16x2).f32"},
    {"cvt.rna{.satfinite}.tf32.f32"},
    {"cvt(.rn|.rz){.relu}.tf32.f32"},
    {"cvt.rn.satfinite{.relu}(.e4m3x2|.e5m2x2)(.f32|.f16x2)"},
    {"cvt.rn{.relu}.f16x2(.e4m3x2|.e5m2x2)"},
    {"cvt.pack.sat(.u16|.s16).s32"},
    {"cvt.pack.sat(.u8|.s8).s32.b32"},
};

// The modifiers of loads and stores are exclusive: a cache operator, eviction and prefetch hints, or a memory order.
constexpr Syntax memory[] = {
    {"ld{.weak}{$space|.const|.param}{.ca|.cg|.cs|.lu|.cv}{.v2}($memory)"},
    {"ld{.weak}{$space|.const|.param}{.ca|.cg|.cs|.lu|.cv}.v4($upto32)"},
    {"ld{.weak}{.global}{$evict1}{$prefetch2}{.L2::cache_hint}{.v2}($memory)"},
    {"ld.volatile{$space}{.v2}($memory)"},
    {"ld.volatile{$space}.v4($upto32)"},
    {"ld(.relaxed|.acquire)($scope){.global|.shared|.shared::cluster}{.v2}($memory)"},
    {"ld.mmio.relaxed.sys{.global}($memory)"},
    {"ld.global{.ca|.cg|.cs}.nc{.v2}($memory)"},
    {"ld.global.nc{$evict1}{$prefetch2}.v4($upto32)"},
    {"ldu{.global}{.v2}($memory)"},
    {"ldu{.global}.v4($upto32)"},
    {"st{.weak}{$space}{.wb|.cg|.cs|.wt}{.v2}($memory)"},
    {"st{.weak}{$space}{.wb|.cg|.cs|.wt}.v4($upto32)"},
    {"st{.weak}{.global}{$evict1}{.L2::cache_hint}{.v2}($memory)"},
    {"st.volatile{$space}{.v2}($memory)"},
    {"st.volatile{$space}.v4($upto32)"},
    {"st(.relaxed|.release)($scope){.global|.shared|.shared::cluster}{.v2}($memory)"},
    {"st.mmio.relaxed.sys{.global}($memory)"},
    {"atom{.relaxed|.acquire|.release|.acq_rel}{$scope}{.global|.shared|.shared::cta|.shared::cluster}(.min|.max)($wide)"},
    {"atom{.relaxed|.acquire|.release|.acq_rel}{$scope}{.global|.shared|.shared::cta|.shared::cluster}.add(.u32|.s32|.u64)"},
    {"atom{.relaxed|.acquire|.release|.acq_rel}{$scope}{.global|.shared|.shared::cluster}.add{.L2::cache_hint}(.f32|.f64)"},
    {"atom{.relaxed|.acquire|.release|.acq_rel}{$scope}{.global|.shared|.shared::cluster}.add.noftz($half)"},
    {"atom{.relaxed|.acquire|.release|.acq_rel}{$scope}{.global|.shared|.shared::cluster}(.and|.or|.xor|.exch)(.b32|.b64)"},
    {"atom{.relaxed|.acquire|.release|.acq_rel}{$scope}{.global|.shared|.shared::cluster}.cas($bits)"},
    {"atom{.relaxed|.acquire|.release|.acq_rel}{$scope}{.global|.shared|.shared::cluster}(.inc|.dec).u32"},
    {"red{.relaxed|.release}{$scope}{.global|.shared|.shared::cta|.shared::cluster}(.min|.max)($wide)"},
    {"red{.relaxed|.release}{$scope}{.global|.shared|.shared::cta|.shared::cluster}.add(.u32|.s32|.u64)"},
    {"red{.relaxed|.release}{$scope}{.global|.shared|.shared::cluster}.add{.L2::cache_hint}(.f32|.f64)"},
    {"red{.relaxed|.release}{$scope}{.global|.shared|.shared::cluster}.add.noftz($half)"},
    {"red{.relaxed|.release}{$scope}{.global|.shared|.shared::cluster}(.and|.or|.xor)(.b32|.b64)"},
    {"red{.relaxed|.release}{$scope}{.global|.shared|.shared::cluster}(.inc|.dec).u32"},
    {"(atom|red).global(.min|.max).L2::cache_hint($wide)"},
    {"(atom|red).global.add.L2::cache_hint(.u32|.s32|.u64)"},
    {"(atom|red).global.add.noftz.L2::cache_hint($half)"},
    {"(atom|red).global(.and|.or|.xor).L2::cache_hint(.b32|.b64)"},
    {"(atom|red).global(.inc|.dec).L2::cache_hint.u32"},
    {"atom.global.exch.L2::cache_hint(.b32|.b64)"},
    {"atom.global.cas.L2::cache_hint($bits)"},
    {"prefetch{.global|.local}(.L1|.L2)"},
    {"prefetch.global(.L2::evict_last|.L2::evict_normal)"},
    {"prefetchu.L1"},
    {"cvta{.to}(.global|.const|.shared|.shared::cluster|.local|.param|.param::entry)(.u32|.u64)"},
    {"isspacep(.global|.const|.shared|.shared::cta|.shared::cluster|.local|.param|.param::entry)"},
};

// Video instructions, whose selectors are part of the operands.
constexpr Syntax video[] = {
    {"(vadd|vsub|vabsdiff|vmin|vmax)($word)($word)($word){.sat}{.add|.min|.max}"},
    {"(vshl|vshr)($word)($word).u32{.sat}(.clamp|.wrap){.add|.min|.max}"},
    {"vmad($word)($word)($word){.po}{.sat}{.shr7|.shr15}"},
    {"vset($word)($word)($order){.add|.min|.max}"},
    {"(vadd2|vsub2|vavrg2|vabsdiff2|vmin2|vmax2)($word)($word)($word){.sat|.add}"},
    {"(vadd4|vsub4|vavrg4|vabsdiff4|vmin4|vmax4)($word)($word)($word){.sat|.add}"},
    {"(vset2|vset4)($word)($word)($order){.add}"},
};

constexpr Syntax wide[] = {
    {"ld{.weak}{$space|.const|.param}{.ca|.cg|.cs|.lu|.cv}.b128"},
    {"ld.volatile{$space}.b128"},
    {"ld(.relaxed|.acquire)($scope){.global|.shared}.b128"},
    {"ld.mmio.relaxed.sys{.global}.b128"},
    {"ld.global{.nc}{$evict1}{.L2::cache_hint}.b128"},
    {"st{.weak}{$space}{.wb|.cg|.cs|.wt}.b128"},
    {"st.volatile{$space}.b128"},
    {"st(.relaxed|.release)($scope){.global|.shared}.b128"},
    {"st.mmio.relaxed.sys{.global}.b128"},
    {"st.global{$evict1}{.L2::cache_hint}.b128"},
    {"mov.b128"},
    {"lop3(.and|.or).b32"},
    {"atom{.relaxed|.acquire|.release|.acq_rel}{$scope}{.global|.shared}(.exch|.cas).b128"},
    {"atom{.relaxed|.acquire|.release|.acq_rel}{$scope}{.global}.add{.L2::cache_hint}(.v2|.v4).f32"},
    {"atom{.relaxed|.acquire|.release|.acq_rel}{$scope}{.global}(.add|.min|.max).noftz{.L2::cache_hint}(.v2|.v4|.v8)(.f16|.bf16)"},
    {"atom{.relaxed|.acquire|.release|.acq_rel}{$scope}{.global}(.add|.min|.max).noftz{.L2::cache_hint}(.v2|.v4)(.f16x2|.bf16x2)"},
    {"red{.relaxed|.release}{$scope}{.global}.add{.L2::cache_hint}(.v2|.v4).f32"},
    {"red{.relaxed|.release}{$scope}{.global}(.add|.min|.max).noftz{.L2::cache_hint}(.v2|.v4|.v8)(.f16|.bf16)"},
    {"red{.relaxed|.release}{$scope}{.global}(.add|.min|.max).noftz{.L2::cache_hint}(.v2|.v4)(.f16x2|.bf16x2)"},
    {"createpolicy.fractional(.L2::evict_last|.L2::evict_normal|.L2::evict_first|.L2::evict_unchanged).b64"},
    {"createpolicy.range{.global}.L2::evict_last{.L2::evict_unchanged}.b64"},
    {"createpolicy.cvt.L2.b64"},
    {"applypriority{.global}.L2::evict_normal"},
    {"discard{.global}.L2"},
    {"brkpt"},
    {"pmevent{.mask}"},
};

constexpr Syntax exchange[] = {
    {"shfl.sync(.up|.down|.bfly|.idx).b32"},
    {"vote.sync(.all|.any|.uni).pred"},
    {"vote.sync.ballot.b32"},
    {"match(.any|.all).sync(.b32|.b64)"},
    {"redux.sync(.add|.min|.max)(.u32|.s32)"},
    {"redux.sync(.and|.or|.xor).b32"},
    {"activemask.b32"},
};

constexpr Syntax async[] = {
    {"cp.async.ca(.shared|.shared::cta).global{.L2::cache_hint}{$prefetch2}"},
    {"cp.async.cg(.shared|.shared::cta).global{.L2::cache_hint}{$prefetch2}"},
    {"cp.async(.commit_group|.wait_group|.wait_all)"},
    {"cp.async.mbarrier.arrive{.noinc}{.shared|.shared::cta}.b64"},
    {"cp.async.bulk(.shared::cta|.shared::cluster).global.mbarrier::complete_tx::bytes{.L2::cache_hint}"},
    {"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster{.L2::cache_hint}"},
    {"cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes"},
    {"cp.async.bulk.global.shared::cta.bulk_group{.L2::cache_hint}"},
    {"cp.async.bulk.prefetch.L2.global{.L2::cache_hint}"},
    {"cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.add(.u32|.s32|.u64)"},
    {"cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes(.min|.max)(.u32|.s32)"},
    {"cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes(.and|.or|.xor).b32"},
    {"cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes(.inc|.dec).u32"},
    {"cp.reduce.async.bulk.global.shared::cta.bulk_group{.L2::cache_hint}.add(.u32|.s32|.u64|.f32|.f64)"},
    {"cp.reduce.async.bulk.global.shared::cta.bulk_group{.L2::cache_hint}.add.noftz(.f16|.bf16)"},
    {"cp.reduce.async.bulk.global.shared::cta.bulk_group{.L2::cache_hint}(.min|.max)(.u32|.s32|.u64|.s64|.f16|.bf16)"},
    {"cp.reduce.async.bulk.global.shared::cta.bulk_group{.L2::cache_hint}(.and|.or|.xor)(.b32|.b64)"},
    {"cp.reduce.async.bulk.global.shared::cta.bulk_group{.L2::cache_hint}(.inc|.dec).u32"},
    {"st.async{.weak}{.shared::cluster}.mbarrier::complete_tx::bytes{.v2|.v4}(.b32|.u32|.s32|.f32)"},
    {"st.async{.weak}{.shared::cluster}.mbarrier::complete_tx::bytes{.v2}(.b64|.u64|.s64|.f64)"},
    {"red.async.relaxed.cluster{.shared::cluster}.mbarrier::complete_tx::bytes.add(.u32|.s32|.u64)"},
    {"red.async.relaxed.cluster{.shared::cluster}.mbarrier::complete_tx::bytes(.min|.max)(.u32|.s32)"},
    {"red.async.relaxed.cluster{.shared::cluster}.mbarrier::complete_tx::bytes(.and|.or|.xor).b32"},
    {"red.async.relaxed.cluster{.shared::cluster}.mbarrier::complete_tx::bytes(.inc|.dec).u32"},
    {"cp.async.bulk.commit_group"},
    {"cp.async.bulk.wait_group{.read}"},
    {"mbarrier(.init|.inval){.shared|.shared::cta}.b64"},
    {"mbarrier(.expect_tx|.complete_tx){.relaxed.cta|.relaxed.cluster}{.shared|.shared::cta|.shared::cluster}.b64"},
    {"mbarrier(.arrive|.arrive_drop){.expect_tx}{.release.cta|.release.cluster|.relaxed.cta|.relaxed.cluster}{.shared|.shared::cta|.shared::cluster}.b64"},
    {"mbarrier(.arrive|.arrive_drop).noComplete{.release.cta}{.shared|.shared::cta}.b64"},
    {"mbarrier(.test_wait|.try_wait){.parity}{.acquire.cta|.acquire.cluster|.relaxed.cta|.relaxed.cluster}{.shared|.shared::cta}.b64"},
    {"mbarrier.pending_count.b64"},
    {"barrier.cluster.arrive{.release|.relaxed}{.aligned}"},
    {"barrier.cluster.wait{.acquire}{.aligned}"},
    {"mapa{.shared::cluster}(.u32|.u64)"},
    {"getctarank{.shared::cluster}(.u32|.u64)"},
    {"elect.sync"},
    {"fence.proxy(.alias|.async)"},
    {"fence.proxy.async(.global|.shared::cta|.shared::cluster)"},
    {"fence.mbarrier_init.release.cluster"},
    {"fence{.proxy.async::generic}.acquire.sync_restrict::shared::cluster.cluster"},
    {"fence{.proxy.async::generic}.release.sync_restrict::shared::cta.cluster"},
    {"griddepcontrol(.wait|.launch_dependents)"},
};

constexpr Syntax tensor_copies[] = {
    {"cp.async.bulk.tensor($rank)(.shared::cta|.shared::cluster).global{.tile}.mbarrier::complete_tx::bytes{.L2::cache_hint}"},
    {"cp.async.bulk.tensor($rank).shared::cluster.global{.tile}.mbarrier::complete_tx::bytes.multicast::cluster{.L2::cache_hint}"},
    {"cp.async.bulk.tensor(.3d|.4d|.5d)(.shared::cta|.shared::cluster).global.im2col.mbarrier::complete_tx::bytes{.L2::cache_hint}"},
    {"cp.async.bulk.tensor(.3d|.4d|.5d).shared::cluster.global.im2col.mbarrier::complete_tx::bytes.multicast::cluster{.L2::cache_hint}"},
    {"cp.async.bulk.tensor($rank).global.shared::cta{.tile}.bulk_group{.L2::cache_hint}"},
    {"cp.async.bulk.tensor(.3d|.4d|.5d).global.shared::cta.im2col_no_offs.bulk_group{.L2::cache_hint}"},
    {"cp.reduce.async.bulk.tensor($rank).global.shared::cta(.add|.min|.max|.inc|.dec|.and|.or|.xor){.tile}.bulk_group{.L2::cache_hint}"},
    {"cp.reduce.async.bulk.tensor(.3d|.4d|.5d).global.shared::cta(.add|.min|.max|.inc|.dec|.and|.or|.xor).im2col_no_offs.bulk_group{.L2::cache_hint}"},
    {"cp.async.bulk.prefetch.tensor($rank).L2.global{.tile}{.L2::cache_hint}"},
    {"cp.async.bulk.prefetch.tensor(.3d|.4d|.5d).L2.global.im2col{.L2::cache_hint}"},
    {"tensormap.replace.tile(.rank|.box_dim|.global_dim|.element_stride|.elemtype|.interleave_layout|.swizzle_mode|.fill_mode){.global|.shared::cta}.b1024.b32"},
    {"tensormap.replace.tile(.global_address|.global_stride){.global|.shared::cta}.b1024.b64"},
    {"tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release($scope).sync.aligned"},
    {"fence.proxy.tensormap::generic(.acquire|.release)($scope)"},
    {"prefetch{.param|.const}.tensormap"},
};

constexpr Syntax control[] = {
    {"bar.warp.sync"},
    {"bar{.cta}(.sync|.arrive)"},
    {"barrier{.cta}(.sync|.arrive){.aligned}"},
    {"bar{.cta}.red.popc.u32"},
    {"bar{.cta}.red(.and|.or).pred"},
    {"barrier{.cta}.red.popc{.aligned}.u32"},
    {"barrier{.cta}.red(.and|.or){.aligned}.pred"},
    {"membar(.cta|.gl|.sys)"},
    {"fence{.sc|.acq_rel|.acquire|.release}($scope)"},
    {"nanosleep.u32"},
    {"bra{.uni}"},
    {"brx.idx{.uni}"},
    {"call{.uni}"},
    {"ret{.uni}"},
    {"exit"},
    {"trap"},
    {"(alloca|stacksave|stackrestore)(.u32|.u64)"},
};

constexpr Syntax tensor[] = {
    {"mma.sync.aligned.m8n8k4(.row|.col)(.row|.col)(.f16.f16.f16.f16|.f16.f16.f16.f32|.f32.f16.f16.f32)"},
    {"mma.sync.aligned(.m16n8k8|.m16n8k16).row.col(.f16.f16.f16.f16|.f32.f16.f16.f32|.f32.bf16.bf16.f32)"},
    {"mma.sync.aligned(.m16n8k4|.m16n8k8).row.col.f32.tf32.tf32.f32"},
    {"mma.sync.aligned(.m8n8k4|.m16n8k4|.m16n8k8|.m16n8k16).row.col.f64.f64.f64.f64"},
    {"mma.sync.aligned(.m16n8k16|.m16n8k32).row.col.f16($fp8)($fp8).f16"},
    {"mma.sync.aligned(.m16n8k16|.m16n8k32).row.col.f32($fp8)($fp8).f32"},
    {"mma.sync.aligned(.m8n8k16|.m16n8k16|.m16n8k32).row.col{.satfinite}.s32(.s8|.u8)(.s8|.u8).s32"},
    {"mma.sync.aligned(.m8n8k32|.m16n8k32|.m16n8k64).row.col{.satfinite}.s32(.s4|.u4)(.s4|.u4).s32"},
    {"mma.sync.aligned(.m8n8k128|.m16n8k128|.m16n8k256).row.col.s32.b1.b1.s32(.xor|.and).popc"},
    {"mma$sp.sync.aligned(.m16n8k16|.m16n8k32).row.col(.f16.f16.f16.f16|.f32.f16.f16.f32|.f32.bf16.bf16.f32)"},
    {"mma$sp.sync.aligned(.m16n8k8|.m16n8k16).row.col.f32.tf32.tf32.f32"},
    {"mma$sp.sync.aligned.m16n8k64.row.col.f16($fp8)($fp8).f16"},
    {"mma$sp.sync.aligned.m16n8k64.row.col.f32($fp8)($fp8).f32"},
    {"mma$sp.sync.aligned(.m16n8k32|.m16n8k64).row.col{.satfinite}.s32(.s8|.u8)(.s8|.u8).s32"},
    {"mma$sp.sync.aligned(.m16n8k64|.m16n8k128).row.col{.satfinite}.s32(.s4|.u4)(.s4|.u4).s32"},
    {"wmma.mma.sync.aligned(.row|.col)(.row|.col)($tile)(.f16|.f32)(.f16|.f32)"},
    {"wmma.mma.sync.aligned(.row|.col)(.row|.col)($tile).f32.bf16.bf16.f32"},
    {"wmma.mma.sync.aligned(.row|.col)(.row|.col).m16n16k8.f32.tf32.tf32.f32"},
    {"wmma.mma.sync.aligned(.row|.col)(.row|.col).m8n8k4{$rnd}.f64.f64.f64.f64"},
    {"wmma.mma.sync.aligned(.row|.col)(.row|.col)($tile)(.s32.s8.s8.s32|.s32.u8.u8.s32){.satfinite}"},
    {"wmma.mma.sync.aligned.row.col.m8n8k32(.s32.s4.s4.s32|.s32.u4.u4.s32){.satfinite}"},
    {"wmma.mma(.xor|.and).popc.sync.aligned.row.col.m8n8k128.s32.b1.b1.s32"},
    {"wmma.load(.a|.b).sync.aligned(.row|.col)($tile){$share}(.f16|.bf16|.s8|.u8)"},
    {"wmma.load(.a|.b).sync.aligned(.row|.col).m16n16k8{$share}.tf32"},
    {"wmma.load(.a|.b).sync.aligned(.row|.col).m8n8k4{$share}.f64"},
    {"wmma.load(.a.sync.aligned.row|.b.sync.aligned.col).m8n8k32{$share}(.s4|.u4)"},
    {"wmma.load(.a.sync.aligned.row|.b.sync.aligned.col).m8n8k128{$share}.b1"},
    {"wmma(.load.c|.store.d).sync.aligned(.row|.col)($tile){$share}(.f16|.f32|.s32)"},
    {"wmma(.load.c|.store.d).sync.aligned(.row|.col).m16n16k8{$share}.f32"},
    {"wmma(.load.c|.store.d).sync.aligned(.row|.col).m8n8k4{$share}.f64"},
    {"wmma(.load.c|.store.d).sync.aligned(.row|.col)(.m8n8k32|.m8n8k128){$share}.s32"},
    {"ldmatrix.sync.aligned.m8n8(.x1|.x2|.x4){.trans}{.shared|.shared::cta}.b16"},
    {"stmatrix.sync.aligned.m8n8(.x1|.x2|.x4){.trans}{.shared|.shared::cta}.b16"},
    {"movmatrix.sync.aligned.m8n8.trans.b16"},
};

// This omits features that the emulated device lacks: .base, offsets, depth comparisons, samples, separate samplers,
// f16; and those that GPU drivers refuse: queries of a texture's format and coordinates, and of a surface's layers,
// format and layout.
constexpr Syntax image[] = {
    {"tex($geometry|$cubes).v4($texel).f32"},
    {"tex($geometry).v4($texel).s32"},
    {"tex(.base|.level|.grad)($geometry|$cubes).v4($texel).f32"},
    {"tld4(.r|.g|.b|.a)(.2d|.a2d|.cube|.acube).v4($texel).f32"},
    {"suld.b($geometry){.ca|.cg|.cs|.cv}{.v2}(.b8|.b16|.b32|.b64)($outside)"},
    {"suld.b($geometry){.ca|.cg|.cs|.cv}.v4(.b8|.b16|.b32)($outside)"},
    {"sust.b($geometry){.wb|.cg|.cs|.wt}{.v2}(.b8|.b16|.b32|.b64)($outside)"},
    {"sust.b($geometry){.wb|.cg|.cs|.wt}.v4(.b8|.b16|.b32)($outside)"},
    {"sust.p($geometry){.wb|.cg|.cs|.wt}{.v2|.v4}.b32($outside)"},
    {"sured.b(.add|.min|.max)(.1d|.2d|.3d)(.u32|.s32|.u64)($outside)"},
    {"sured.b(.and|.or)(.1d|.2d|.3d).b32($outside)"},
    {"sured.p(.add|.min|.max|.and|.or)(.1d|.2d|.3d).b32($outside)"},
    {"txq(.width|.height|.depth|.array_size|.num_mipmap_levels|.num_samples).b32"},
    {"suq(.width|.height|.depth).b32"},
    {"istypep(.texref|.samplerref|.surfref)"},
};

std::string with_sets(std::string_view line) {
    std::string made;
    while (!line.empty()) {
        if (line[0] != '$') {
            made += line[0];
            line.remove_prefix(1);
            continue;
        }
        const Set* longest = nullptr;
        for (const Set& set : sets) {
            if (!line.substr(1).starts_with(set.name)) continue;
            if (!longest || set.name.size() > longest->name.size()) longest = &set;
        }
        if (!longest) throw std::logic_error("no such set of types: " + std::string(line));
        made += longest->members;
        line.remove_prefix(1 + longest->name.size());
    }
    return made;
}

void expand(std::string_view line, const std::string& before, std::vector<std::string>& made) {
    const std::size_t open = line.find_first_of("({");
    if (open == line.npos) {
        made.push_back(before + std::string(line));
        return;
    }
    const std::string start = before + std::string(line.substr(0, open));
    const std::size_t close = line.find(line[open] == '(' ? ')' : '}', open);
    std::string_view choices = line.substr(open + 1, close - open - 1);
    const std::string_view rest = line.substr(close + 1);
    if (line[open] == '{') expand(rest, start, made);
    while (!choices.empty()) {
        const std::size_t bar = choices.find('|');
        expand(rest, start + std::string(choices.substr(0, bar)), made);
        choices = bar == choices.npos ? "" : choices.substr(bar + 1);
    }
}

}  // namespace

std::span<const Syntax> scalar_syntax() { return scalar; }
std::span<const Syntax> memory_syntax() { return memory; }
std::span<const Syntax> video_syntax() { return video; }
std::span<const Syntax> wide_syntax() { return wide; }
std::span<const Syntax> exchange_syntax() { return exchange; }
std::span<const Syntax> control_syntax() { return control; }
std::span<const Syntax> tensor_syntax() { return tensor; }
std::span<const Syntax> async_syntax() { return async; }
std::span<const Syntax> tensor_copy_syntax() { return tensor_copies; }
std::span<const Syntax> image_syntax() { return image; }

std::vector<std::string> spellings_of(const Syntax& syntax) {
    std::vector<std::string> made;
    expand(with_sets(syntax.line), "", made);
    return made;
}

}  // namespace reference
