// SPDX-License-Identifier: Apache-2.0
// Forms of instructions that there are and that there are not, line by line: what the simulator's
// reader takes, and, where ptxas is at hand, that ptxas says the same.
#include "sim/sim.h"
#include "tests/sim_env.h"

#include "tests/sim_ptxas.h"

#include <criterion/criterion.h>
#include <string.h>

static const char head[] = ".version 8.6\n.target sm_90a\n.address_size 64\n"
                           ".global .align 128 .b8 gv[4096];\n.const .align 128 .b8 cv[4096];\n"
                           ".shared .align 128 .b8 sv[4096];\n"
                           ".visible .entry k(.param .u64 pv) {\n"
                           ".local .align 128 .b8 lv[256];\n.reg .pred %p<16>; .reg .b16 %h<32>;\n"
                           ".reg .b32 %r<64>; .reg .b64 %d<64>;\n";
static const char tail[] = "ret;\n}\n";

static const char *const taken[] = {
    // Loads and stores: caches, orders and scopes, by space.
    "ld.global.b32 %r1, [gv];",
    "ld.weak.shared::cta.v4.b32 {%r1, %r2, %r3, %r4}, [sv];",
    "ld.param.ca.b64 %d1, [pv];",
    "ld.const.v2.f32 {%r1, %r2}, [cv];",
    "ld.local.cs.b32 %r1, [lv];",
    "ld.global.v8.b16 {%h1, %h2, %h3, %h4, %h5, %h6, %h7, %h8}, [gv];",
    "ld.global.ca.nc.b32 %r1, [gv];",
    "ld.global.nc.L1::no_allocate.L2::128B.v4.b32 {%r1, %r2, %r3, %r4}, [gv];",
    "ld.L2::cache_hint.b32 %r1, [%d2], %d1;",
    "ld.global.L1::no_allocate.L2::cache_hint.L2::128B.v4.b32 {%r1, %r2, %r3, %r4}, [gv], %d1;",
    "ld.volatile.global.L2::128B.b32 %r1, [gv];",
    "ld.volatile.shared.b32 %r1, [sv];",
    "ld.acquire.gpu.global.L2::cache_hint.b32 %r1, [gv], %d1;",
    "ld.relaxed.cluster.shared::cluster.b32 %r1, [%r2];",
    "ld.mmio.relaxed.sys.global.b32 %r1, [gv];",
    "ld.shared.b32 %r1, [%r2+4294967280];",
    "ldu.global.v4.f32 {%r1, %r2, %r3, %r4}, [gv];",
    "st.global.wb.L2::cache_hint.b32 [gv], %r1, %d1;",
    "st.release.gpu.global.b32 [gv], %r1;",
    "st.relaxed.gpu.global.L1::no_allocate.b32 [gv], %r1;",
    "st.volatile.global.v2.b32 [gv], {%r1, %r2};",
    "st.local.cs.b32 [lv], %r1;",
    // No blanks where none are needed
    "{.reg.b32 a,b;.reg.b16 h<3>;mov.b32 a,%r1;}",
    "mov.u32%r1,5;",
    "{.local.b32 z[4];mov.u64%d1,z;}",
    // Tensor copies
    "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%d1, {%r1, 5+4}], [%r4];",
    // Registers and numbers of lists
    "{.reg .u32 a; .reg .f32 b; ld.global.v2.u32 {%r1, b}, [gv]; ld.global.v2.f32 {a, a}, [gv];}",
    "{.reg .f32 b; st.global.v2.b32 [gv], {b, 1.5}; st.global.v2.b32 [gv], {%r1, 1.5};}",
    "{.reg .u32 a; st.global.v4.b32 [gv], {a, 5, %r1, 6};}",
    "{.reg .f16x2 x; mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {x, x}, {x, x, x, x}, "
    "{x, x}, {x, x};}",
    "{.reg .f32 f; .reg .u32 u; mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {f, f, f, f}, "
    "{%r1, u, u, u}, {%r1, f}, {%r1, u, u, u};}",
    "{.reg .f32 f; .reg .s32 s; mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {s, s, s, s}, {f, "
    "f, f, f}, {s, s}, {%r1, %r2, %r3, 0};}",
    "{.reg .f32 f; .reg .f16x2 x; wgmma.mma_async.sync.aligned.m64n8k8.f32.tf32.tf32 {f, f, f, f}, "
    "{x, x, x, x}, %d2, %p1, 1, 1;}",
    // Results that are discarded
    "shfl.sync.idx.b32 %r1|_, %r2, %r3, 31, -1;",
    "lop3.b32 _, %r1, %r2, %r3, 5;",
    "match.all.sync.b32 _, %r2, -1;",
    "lop3.or.b32 _|%p1, %r1, %r2, %r3, 5, %p2;",
    // Names
    "mov.u32 %r1, %tid.w;",
    "mov.u16 %h1, %nctaid.w;",
    "mov.u64 %d1, k;",
    "{.reg .b32 a3, a<3>, a;}",
    "{.reg .b64 a12; .reg .b32 a1<5>; mov.b64 a12, 1;}",
    "{a3: .reg .b32 a<5>;}",
    "{.shared .b32 a, b[3]; .local .b32 c, d[4]; .param .b32 e, f;}",
    // Lists
    "{.reg .f16x2 a; .reg .f32 b; st.global.v4.b32 [gv], {a, %r1, %r2, b};}",
    "{.reg .f32 a; mov.b64 %d1, {a, %r1};}",
    "{.reg .u32 a; .reg .s32 b; mov.b64 {a, b}, %d1;}",
    "{.reg .f16 a; mov.b64 %d1, {%h1, a, %h2, %h3};}",
    "{.reg .f32 a<3>; st.global.v2.b32 [gv], {a1, a2};}",
    "{.reg .u16 a; .reg .s16 b; ld.global.v2.b16 {a, b}, [gv];}",
    "mov.b64 {%r1, _}, %d1;",
    "mov.b64 %d1, {%r1, 5};",
    // Atomics
    "atom.global.add.noftz.f16x2 %r1, [gv], %r2;",
    "atom.acq_rel.gpu.global.cas.b16 %h1, [gv], %h2, %h3;",
    "atom.shared.max.s64 %d1, [sv], %d2;",
    "atom.global.exch.L2::cache_hint.b64 %d1, [gv], %d2, %d3;",
    "red.release.gpu.global.add.f32 [gv], %r1;",
    "red.shared.inc.u32 [sv], %r1;",
    // Comparisons
    "setp.lo.and.u32 %p1|%p2, %r1, %r2, %p3;",
    "setp.ne.b64 %p1, %d1, %d2;",
    "setp.ltu.ftz.f16x2 %p1|%p2, %r1, %r2;",
    "set.gt.u32.bf16 %r1, %h1, %h2;",
    "set.eq.ftz.f32.f32 %r1, %r2, %r3;",
    "slct.ftz.b64.f32 %d1, %d2, %d3, %r1;",
    // Floats, conversions, moves
    "add.rn.ftz.sat.f16x2 %r1, %r2, %r3;",
    "fma.rn.relu.bf16 %h1, %h2, %h3, %h4;",
    "ex2.approx.ftz.bf16x2 %r1, %r2;",
    "ex2.approx.f16 %h1, %h2;",
    "rcp.approx.ftz.f64 %d1, %d2;",
    "min.relu.s16x2 %r1, %r2, %r3;",
    "cvt.rzi.ftz.sat.s32.f32 %r1, %r2;",
    "cvt.sat.u8.s8 %h1, %h2;",
    "cvt.sat.s64.u64 %d1, %d2;",
    "cvt.rna.satfinite.tf32.f32 %r1, %r2;",
    "cvt.rn.bf16.s32 %h1, %r2;",
    "mov.f64 %d1, %d2;",
    "lop3.b32 %r1, %r2, %r3, %r4, 0x80;",
    // Copies and barriers in memory
    "cp.async.ca.shared.global.L2::cache_hint [sv], [gv], 16, %d1;",
    "cp.async.wait_group 1;",
    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [sv], [gv], %r1, [sv];",
    "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r1}, [sv];",
    "mbarrier.arrive.release.cta.shared.b64 %d1, [sv];",
    "mbarrier.arrive.noComplete.shared.b64 %d1, [sv], 1;",
    "mbarrier.try_wait.parity.acquire.cluster.shared.b64 %p1, [sv], %r1;",
    "fence.proxy.tensormap::generic.acquire.gpu [gv], 128;",
    "mbarrier.complete_tx.shared::cluster.b64 [%r2], %r1;",
    "mbarrier.expect_tx.b64 [%d2], %r1;",
    "set.eq.u16.bf16 %h1, %h2, %h3;",
    "set.eq.bf16.f16 %h1, %h2, %h3;",
    "set.eq.ftz.u32.f16x2 %r1, %r2, %r3;",
    "set.eq.and.s32.bf16x2 %r1, %r2, %r3, %p1;",
    // Words in another order
    "ldmatrix.sync.aligned.x2.trans.m8n8.shared.b16 {%r1, %r2}, [sv];",
    "ldmatrix.m8n8.x2.sync.aligned.b16.shared {%r1, %r2}, [sv];",
    "add.sat.rn.ftz.f32 %r1, %r2, %r3;",
    "cvt.s32.rzi.f32 %r1, %r2;",
    "ld.b32.gpu.acquire.global %r1, [gv];",
    "atom.u32.add.global %r1, [gv], %r2;",
    "cp.async.bulk.tensor.shared::cluster.global.2d.mbarrier::complete_tx::bytes [sv], [%d1, {%r1, "
    "%r2}], [sv];",
    "wgmma.mma_async.sync.aligned.m64n8k32.s32.s8.s8.satfinite {%r1, %r2, %r3, %r4}, %d1, %d2, "
    "%p1;",
    "mma.aligned.sync.row.col.m16n8k16.s32.s8.s8.s32.satfinite {%r1, %r2, %r3, %r4}, {%r5, %r6}, "
    "{%r7}, {0, 0, 0, 0};",
    "barrier.aligned.sync 1;",
    "fence.proxy.global.async;",
    "ld.global .b32 %r1, [gv];",
    // Numbers
    "bar.sync (1 << 3) + 7, 2 * WARP_SZ;",
    "lop3.b32 %r1, %r2, %r3, %r4, 0xF0 & 0xCC | 0xAA;",
    "mov.u32 %r1, -(1+2) ? ~0 : !5;",
    "mov.u32 %r1, 10 % 3 == 1 && 8 >> 1 <= 4 || 1 ^ 2;",
    "mov.u32 %r1, (.u64)-5 / (.s64)2;",
    "mov.f32 %r1, 1.0 / (3.0 - .5);",
    "mov.u64 %d1, gv+(1<<4)|3;",
    "ld.global.b32 %r1, [%d1+4*2+-(4)];",
    "st.shared.u32 [sv+(4*3)], (5*5);",
    "add.f32 %r1, 1.0, 0f3f800000;",
    "mov.b32 %r1, 0f3f800000;",
    "ld.local.b32 %r1, [4];",
    "cp.async.ca.shared.global [sv], [gv], 8, 8;",
    "mbarrier.arrive.expect_tx.shared.b64 %d1, [sv], 0;",
    "createpolicy.fractional.L2::evict_last.b64 %d1, 0.5;",
    "pmevent.mask 65535;",
    "mapa.shared::cluster.u32 %r1, sv+4, 1;",
    // What is discarded
    "atom.global.add.u32 _, [gv], 1;",
    "setp.eq.u32 _|%p1, %r1, %r2;",
    "ld.global.v2.b32 {%r1, _}, [gv];",
    // Special registers
    "mov.u64 %d1, %clock64;",
    "mov.u16 %h1, %tid.x;",
    "cvt.u64.u32 %d1, %tid.x;",
    // Registers of another type than the operand's, of its size
    "{.reg .f32 a; and.b32 %r1, a, %r2;}",
    "{.reg .u32 a; add.s32 %r1, a, %r2;}",
    "{.reg .f16x2 a; add.s32 %r1, a, %r2;}",
    "{.reg .f16x2 a; min.u16x2 a, a, %r2;}",
    "{.reg .f16x2 a; mad.wide.u16 a, %h1, %h2, a;}",
    "{.reg .f32 a; mov.b32 %r1, a;}",
    "{.reg .f64 a; ld.global.b32 a, [gv];}",
    "{.reg .b64 a; ld.global.f32 a, [gv];}",
    "{.reg .s32 a, b; ld.global.v2.f32 {a, b}, [gv];}",
    "{.reg .s32 a; mov.b64 %d1, {a, %r1};}",
    "{.reg .f32 a; shfl.sync.bfly.b32 a, a, a, 31, -1;}",
    "{.reg .f32 a; prmt.b32 %r1, a, a, a;}",
    "{.reg .f32 a; fns.b32 %r1, a, a, a;}",
    "{.reg .f16x2 a; dp4a.u32.u32 %r1, a, a, %r2;}",
    "{.reg .f32 a; redux.sync.and.b32 %r1, %r1, %r2;}",
    "{.reg .f32 a, b; movmatrix.sync.aligned.m8n8.trans.b16 a, b;}",
    "{.reg .f32 a; ldmatrix.sync.aligned.m8n8.x1.shared.b16 {a}, [sv];}",
    "{.reg .b64 %r1; mov.b64 %r1, 1;}",
    // Names: ranges stand beside registers, inner ones hide what they have themselves
    "{.reg .b64 %r<5>; mov.b64 %r1, 1; mov.b32 %r5, 1;}",
    "{.reg .b32 a<5>; {.reg .b64 a<3>; {.reg .b16 a<2>; mov.b16 a1, 1; mov.b64 a2, 1; "
    "mov.b32 a3, 1;} mov.b64 a1, 1;} mov.b32 a1, 1;}",
    "{.reg .b32 a; .reg .b64 a<5>; mov.b32 a, 1; mov.b64 a1, 1;}",
    "{.reg .b32 a<5>; .reg .b64 a7; mov.b32 a1, 1; mov.b64 a7, 1;}",
    "{.reg .b32 a<50>; .reg .b64 a1<5>; mov.b32 a12, 1;}",
    "{.reg .b32 a12; mov.b32 a12, 1; {.reg .b64 a<50>; mov.b64 a12, 1;}}",
    "{.reg .b32 a<50>; mov.b32 a12, 1; {.reg .b64 a12; mov.b64 a12, 1;}}",
    "{.reg .b32 a<5>; a3: mov.b32 a1, 1;}",
    "{.reg .b32 pv; mov.b32 pv, 1;}",
    ".reg .b32 pv<3>; mov.b32 pv1, 1;",
    // Floats where words are taken
    "shfl.sync.bfly.b32 %r1, %r2, 0f3f800000, 0f3f800000, -1;",
    "prmt.b32 %r1, %r2, %r3, 0f3f800000;",
    "fns.b32 %r1, 0f3f800000, %r2, %r3;",
    "cvt.rna.tf32.f32 %r1, 0f3f800000;",
    "tensormap.replace.tile.rank.b1024.b32 [%d1], 0f3f800000;",
    // Lists of one
    "mov.b64 {%d1}, %d2;",
    "mov.b16 %h1, {33};",
    "mov.b32 {%r1}, 5;",
    "mov.b64 %d1, {1.5};",
    "mov.b32 %r1, {0f3f800000};",
    // A second result that nobody wants; sums as numbers
    "popc.b64 %r1|_, %d1;",
    "barrier.cta.sync %r1|_, %r2;",
    "setp.lt.f16 %p1|_, %h1, %h2;",
    "add.u32 %r1, %r2, sv+4;",
    "cvta.to.shared.u64 %d1, sv+4;",
    // Numbers whose lower 32 bits count
    "bar.sync 4294967296;",
    "wgmma.wait_group.sync.aligned 0xffffffff;",
    "cp.async.bulk.wait_group 4294967296;",
    "fence.proxy.tensormap::generic.acquire.gpu [%d1], 4294967424;",
    // Spaces of addresses
    "isspacep.param::entry %p1, %d1;",
    "isspacep.const %p1, %r1;",
    "cvta.shared.u64 %d1, sv;",
    "cvta.param.u64 %d1, pv;",
    "mapa.u64 %d1, sv, 1;",
    "getctarank.u64 %r1, sv;",
};

static const char *const refused[] = {
    "{.reg .f64 a<3>; ldu.global.v2.s64 {a1, a2}, [gv];}",
    "{.reg .f64 a<3>; ld.mmio.relaxed.sys.global.u64 {a1}, [gv];}",
    "{.reg .f32 a<3>; st.global.v2.u32 [gv], {a1, a2};}",
    "{.reg .u32 a<3>; atom.global.add.noftz.v2.f16x2 {a1, a2}, [gv], {a1, a2};}",
    "{.reg .f32 a; st.global.v2.b32 [gv], {a, 5};}",
    "{.reg .u32 a; st.global.v2.b32 [gv], {a, 1.0};}",
    "{.reg .u32 a; mov.b64 %d1, {a, 1.0};}",
    "{.reg .f32 a; mov.b64 %d1, {a, 1};}",
    "{.reg .u32 u; mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {u, u, u, u}, {%r1, %r2, %r3, "
    "%r4}, {%r5, %r6}, {%r1, %r2, %r3, %r4};}",
    "{.reg .f32 f; mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {f, f, f, f}, {f, f, f, f}, "
    "{%r5, %r6}, {f, f, f, f};}",
    "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%r1, %r2, %r3, %r4}, {%r1, %r2, %r3, %r4}, "
    "{%r5, %r6}, {0.0, 0.0, 0.0, 0.0};",
    "{.reg .s32 s; wgmma.mma_async.sync.aligned.m64n8k16.f16.f16.f16 {s, s}, %d1, %d2, %p1, 1, 1, "
    "0, 0;}",
    "wgmma.mma_async.sync.aligned.m64n8k32.s32.s8.s8 {%r0, %r1, %r2, %r3}, %r1, %d2, %p1;",
    "prefetchu.L1 [lv];",
    "prefetchu.L1 [sv];",
    "cvt.rna.tf32.f32 %r1, 1.0;",
    "{.reg .f32 f; tensormap.replace.tile.box_dim.global.b1024.b32 [%d1], 0, f;}",
    "lop3.or.b32 %r1|_, %r1, %r2, %r3, 5, %p2;",
    "elect.sync %r1|_, -1;",
    "{.reg .b32 a3; .reg .b32 a<5>;}",
    "{.shared .b32 a3; .reg .b32 a<5>;}",
    "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%d1+128, {%r1, %r2}], [%r4];",
    "cp.async.bulk.tensor.1d.global.shared::cta.bulk_group [%d1+0, {%r1}], [%r4];",
    "ld.release.gpu.global.b32 %r1, [gv];",
    "ld.acquire.global.b32 %r1, [gv];",
    "ld.relaxed.shared.b32 %r1, [sv];",
    "ld.gpu.global.b32 %r1, [gv];",
    "ld.volatile.gpu.global.b32 %r1, [gv];",
    "ld.volatile.local.b32 %r1, [lv];",
    "ld.volatile.const.b32 %r1, [cv];",
    "ld.volatile.global.L2::cache_hint.b32 %r1, [gv], %d1;",
    "ld.weak.gpu.global.b32 %r1, [gv];",
    "ld.relaxed.gpu.local.b32 %r1, [lv];",
    "ld.relaxed.gpu.global.ca.b32 %r1, [gv];",
    "ld.mmio.relaxed.gpu.global.b32 %r1, [gv];",
    "ld.mmio.relaxed.sys.global.v2.b32 {%r1, %r2}, [gv];",
    "ld.shared.nc.b32 %r1, [sv];",
    "ld.nc.b32 %r1, [%d1];",
    "ld.weak.global.nc.b32 %r1, [gv];",
    "ld.global.lu.nc.b32 %r1, [gv];",
    "ld.global.ca.L1::evict_last.b32 %r1, [gv];",
    "ld.shared.L1::evict_last.b32 %r1, [sv];",
    "ld.local.L2::128B.b32 %r1, [lv];",
    "ld.shared.L2::cache_hint.b32 %r1, [sv], %d1;",
    "ld.global.L2::cache_hint.b32 %r1, [gv];",
    "ld.global.b32 %r1, [gv], %d1;",
    "ld.global.f16 %h1, [gv];",
    "ld.global.bf16x2 %r1, [gv];",
    "ld.global.v4.b64 {%d1, %d2, %d3, %d4}, [gv];",
    "ld.global.b32 %r1, [sv];",
    "ld.shared.b32 %r1, [gv];",
    "ldu.global.v8.b16 {%h1, %h2, %h3, %h4, %h5, %h6, %h7, %h8}, [gv];",
    "st.acquire.gpu.global.b32 [gv], %r1;",
    "st.release.global.b32 [gv], %r1;",
    "st.const.b32 [cv], %r1;",
    "st.global.L2::128B.b32 [gv], %r1;",
    "st.volatile.local.b32 [lv], %r1;",
    "st.release.gpu.global.wb.b32 [gv], %r1;",
    "st.global.f16x2 [gv], %r1;",
    "st.shared.b32 [lv], %r1;",
    "atom.global.add.f16x2 %r1, [gv], %r2;",
    "atom.global.add.noftz.f32 %r1, [gv], %r2;",
    "atom.global.add.s64 %d1, [gv], %d2;",
    "atom.global.and.u32 %r1, [gv], %r2;",
    "atom.global.cas.u32 %r1, [gv], %r2, %r3;",
    "atom.global.cas.L2::cache_hint.b32 %r1, [gv], %r2, %r3, %d1;",
    "atom.shared.add.L2::cache_hint.u32 %r1, [sv], %r2, %d1;",
    "atom.global.add.u32 %r1, [gv], %r2, %d1;",
    "red.acquire.gpu.global.add.u32 [gv], %r1;",
    "red.acq_rel.gpu.global.add.u32 [gv], %r1;",
    "red.global.exch.b32 [gv], %r1;",
    "red.shared.add.u32 [gv], %r1;",
    "setp.lo.s32 %p1, %r1, %r2;",
    "setp.lt.b32 %p1, %r1, %r2;",
    "setp.hs.f32 %p1, %r1, %r2;",
    "setp.ltu.u32 %p1, %r1, %r2;",
    "setp.eq.ftz.f64 %p1, %d1, %d2;",
    "setp.eq.ftz.bf16 %p1, %h1, %h2;",
    "set.lt.u32.b32 %r1, %r2, %r3;",
    "set.hi.f32.s32 %r1, %r2, %r3;",
    "set.eq.f32.f16 %r1, %h2, %h3;",
    "set.eq.ftz.bf16.f32 %h1, %r2, %r3;",
    "selp.f16 %h1, %h2, %h3, %p1;",
    "slct.ftz.b32.s32 %r1, %r2, %r3, %r4;",
    "slct.f16.s32 %h1, %h2, %h3, %r4;",
    "mov.f16 %h1, %h2;",
    "add.sat.bf16 %h1, %h2, %h3;",
    "mul.ftz.bf16x2 %r1, %r2, %r3;",
    "fma.rn.sat.relu.f16 %h1, %h2, %h3, %h4;",
    "neg.ftz.bf16 %h1, %h2;",
    "min.ftz.bf16 %h1, %h2, %h3;",
    "min.relu.u16x2 %r1, %r2, %r3;",
    "ex2.approx.bf16 %h1, %h2;",
    "ex2.approx.ftz.f16 %h1, %h2;",
    "rcp.approx.f64 %d1, %d2;",
    "cvt.ftz.s32.u8 %r1, %h2;",
    "cvt.rn.ftz.f16.s32 %h1, %r2;",
    "cvt.sat.s64.u32 %d1, %r2;",
    "cvt.sat.u32.u8 %r1, %h2;",
    "cvt.rn.sat.bf16.f32 %h1, %r2;",
    "cvt.rn.bf16.u8 %h1, %h2;",
    "cvt.rn.satfinite.tf32.f32 %r1, %r2;",
    "lop3.b32 %r1, %r2, %r3, %r4, %r5;",
    "cp.async.ca.shared.global [sv], [gv], %r1;",
    "cp.async.ca.shared.global.L2::cache_hint [sv], [gv], 16;",
    "cp.async.ca.shared.global [gv], [sv], 16;",
    "cp.async.wait_group %r1;",
    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [sv], [gv], %r1, [gv];",
    "ldmatrix.sync.aligned.m8n8.x1.shared.b16 %r1, [sv];",
    "mbarrier.arrive.release.shared.b64 %d1, [sv];",
    "mbarrier.arrive.cta.shared.b64 %d1, [sv];",
    "mbarrier.arrive.noComplete.shared.b64 %d1, [sv];",
    "mbarrier.try_wait.parity.acquire.shared.b64 %p1, [sv], %r1;",
    "fence.proxy.tensormap::generic.acquire.gpu [gv], %r1;",
    "fence.acquire.sync_restrict::shared::cta.cluster;",
    "setp.eq.bf16 %p1|%p2, %h1, %h2;",
    "setp.eq.f16 %p1|%p2, %h1, %h2;",
    "cvt.rn.bf16.s32 %r1, %r2;",
    // Words in an order that they do not have
    "mul.u32.lo %r1, %r2, %r3;",
    "bar.sync.cta 1;",
    "mbarrier.try_wait.shared.parity.b64 %p1, [sv], 1;",
    "cp.async.ca.global.shared [sv], [gv], 16;",
    "mma.sync.aligned.m16n8k8.col.row.f32.f16.f16.f32 {%r1, %r2, %r3, %r4}, {%r5, %r6}, {%r7}, "
    "{%r1, %r2, %r3, %r4};",
    "shf.wrap.l.b32 %r1, %r2, %r3, 1;",
    // Numbers that an instruction does not take
    "bar.sync 16;",
    "bar.sync -1;",
    "bar.sync 0, 33;",
    "bar.cta.arrive 16, 32;",
    "barrier.arrive 1, 0;",
    "barrier.cta.red.popc.u32 %r1, 16, %p1;",
    "bar.red.and.pred %p1, 1, 33, %p2;",
    "cp.async.cg.shared.global [sv], [gv], 8;",
    "cp.async.ca.shared.global [sv], [gv], 12;",
    "cp.async.ca.shared.global [sv], [gv], 32;",
    "cp.async.ca.shared.global [sv], [gv], 8, 9;",
    "cp.async.ca.shared.global [sv], [gv], 8, -1;",
    "cp.async.bulk.prefetch.L2.global [gv], 15;",
    "cp.async.bulk.global.shared::cta.bulk_group [gv], [sv], 7;",
    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [sv], [gv], 15, [sv];",
    "wgmma.wait_group.sync.aligned -1;",
    "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%r1, %r2, %r3, %r4}, %d1, %d2, %p1, 2, 1, "
    "0, 0;",
    "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%r1, %r2, %r3, %r4}, %d1, %d2, %p1, 1, 1, "
    "0, 2;",
    "setmaxnreg.inc.sync.aligned.u32 16;",
    "setmaxnreg.inc.sync.aligned.u32 264;",
    "setmaxnreg.dec.sync.aligned.u32 30;",
    "bfe.u32 %r1, %r2, 256, 1;",
    "bfi.b32 %r1, %r2, %r3, 1, -1;",
    "mbarrier.arrive.shared.b64 %d1, [sv], 0;",
    "mbarrier.test_wait.parity.shared.b64 %p1, [sv], 2;",
    "pmevent 16;",
    "pmevent.mask 65536;",
    "applypriority.global.L2::evict_normal [gv], 64;",
    "fence.proxy.tensormap::generic.acquire.gpu [gv], 64;",
    "tensormap.replace.tile.box_dim.global.b1024.b32 [gv], 5, %r1;",
    "tensormap.replace.tile.elemtype.global.b1024.b32 [gv], 13;",
    "tensormap.replace.tile.swizzle_mode.global.b1024.b32 [gv], 5;",
    "createpolicy.fractional.L2::evict_last.b64 %d1, 1.5;",
    "createpolicy.fractional.L2::evict_last.b64 %d1, 0.0;",
    "createpolicy.range.global.L2::evict_last.b64 %d1, [gv], 16, 8;",
    // Numbers of another kind than the type
    "add.f32 %r1, %r2, 1;",
    "setp.eq.f32 %p1, %r1, 1;",
    "mov.u32 %r1, 0f3f800000;",
    "mov.u64 %d1, 1.0;",
    "fma.rn.bf16 %h1, %h2, %h3, 5;",
    "add.f16x2 %r1, %r2, 0x3c003c00;",
    "min.u16x2 %r1, %r2, 5;",
    "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%r1, %r2, %r3, %r4}, {%r5, %r6}, {5}, {%r1, "
    "%r2, %r3, %r4};",
    "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%r1, %r2, %r3, %r4}, {%r5, %r6}, %r7, {%r1, "
    "%r2, %r3, %r4};",
    "movmatrix.sync.aligned.m8n8.trans.b16 %r1, 5;",
    "redux.sync.and.b32 %r1, %r2, 0f3f800000;",
    "barrier.cta.red.or.aligned.pred %p1, 1, 1.0;",
    // Addresses
    "ld.shared.b32 %r1, [0];",
    "ld.b32 %r1, [1024];",
    "ld.global.b32 %r1, [4096];",
    "atom.shared.add.u32 %r1, [0], 1;",
    "mbarrier.init.shared.b64 [0], 1;",
    "cp.async.ca.shared.global [sv], [0], 4;",
    "ld.b32 %r1, [cv];",
    "st.b32 [pv], %r1;",
    "st.param.b32 [pv], %r1;",
    "mbarrier.init.b64 [gv], 1;",
    "add.u64 %d1, %d2, gv;",
    "st.global.u64 [gv], lv;",
    "mov.f32 %r1, sv;",
    "cvta.to.global.u64 %d1, gv;",
    // Lists, what is discarded, special registers
    "ld.global.v4.b32 {%r1, %r2, %r3}, [gv];",
    "st.global.v2.b32 [gv], {%r1, %r2, %r3};",
    "ld.global.v2.b16 {%h1, %r1}, [gv];",
    "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r1, %r2}, [sv];",
    "add.s32 _, %r1, %r2;",
    "ld.global.b32 _, [gv];",
    "shfl.sync.bfly.b32 _|%p1, %r1, 1, 31, -1;",
    "add.u32 %r1, %r2, %tid.x;",
    "st.global.u32 [gv], %tid.x;",
    "mov.f32 %r1, %tid.x;",
    "mov.u64 %d1, %tid.x;",
    "mov.u32 %r1, %clock64;",
    // Registers of types that do not go with the operand's
    "{.reg .f32 a; add.s32 %r1, %r2, a;}",
    "{.reg .f32 a; add.s32 a, %r2, %r1;}",
    "{.reg .s32 a; add.f32 %r1, a, %r2;}",
    "{.reg .f16x2 a; add.f32 %r1, a, %r2;}",
    "{.reg .s16 a; add.f16 %h1, a, %h2;}",
    "{.reg .f16 a; add.bf16 %h1, a, %h2;}",
    "{.reg .f16x2 a; add.bf16x2 %r1, a, %r2;}",
    "{.reg .s32 a; min.u16x2 %r1, a, %r2;}",
    "{.reg .f64 a; mul.wide.s32 a, %r1, %r2;}",
    "{.reg .f32 a; shl.b32 %r1, %r2, a;}",
    "{.reg .f16x2 a; popc.b32 a, %r2;}",
    "{.reg .u32 a; cvt.rn.f32.s32 a, %r1;}",
    "{.reg .f32 a; cvt.rna.tf32.f32 a, %r1;}",
    "{.reg .s32 a; ld.global.f32 a, [gv];}",
    "{.reg .f64 a; ld.global.f32 a, [gv];}",
    "{.reg .f32 a; st.global.u8 [gv], a;}",
    "{.reg .f64 a; ld.global.b32 %r1, [a];}",
    "{.reg .f32 a; ld.shared.b32 %r1, [a];}",
    "{.reg .f32 a; redux.sync.and.b32 a, %r1, %r2;}",
    "{.reg .f32 a; bmsk.clamp.b32 %r1, a, %r2;}",
    "{.reg .f32 a; bar.sync a;}",
    "{.reg .f32 a; mbarrier.init.shared.b64 [sv], a;}",
    "{.reg .f32 a; atom.global.add.u32 %r1, [gv], a;}",
    // Lists of types that do not go together, or of other widths than the instruction's
    "{.reg .f32 a; .reg .s32 b; mov.b64 %d1, {a, b};}",
    "{.reg .f32 a; .reg .u32 b; mov.b64 {%r1, %r2}, %d2; mov.b64 {a, b}, %d1;}",
    "{.reg .f16x2 a; .reg .u32 b; ld.global.v2.b32 {a, b}, [gv];}",
    "{.reg .f16x2 a; .reg .f32 b; st.global.v4.b32 [gv], {%r1, a, b, %r2};}",
    "{.reg .f16 a; .reg .s16 b; st.shared.v2.b16 [sv], {a, b};}",
    "{.reg .f32 a; .reg .u32 b; ldmatrix.sync.aligned.m8n8.x2.shared.b16 {a, b}, [sv];}",
    "mov.b64 {%h1, %h2}, %d2;",
    "mov.b32 %r2, {%r3, %r8};",
    "mov.b32 {%r3, %r8}, %r2;",
    "mov.b64 %d2, {%r3, %r8, %r1, %r2};",
    "mov.b64 {%d6, %d8}, %d6;",
    "mov.b16 %h3, {%h1, %h2};",
    "{.reg .f32 a<5>; mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%r1, %r2, %r3, %r4}, "
    "{a0, "
    "a1, a2, a3}, {%r5, %r6}, {%r1, %r2, %r3, %r4};}",
    "{.reg .s32 a<5>; mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%r1, %r2, %r3, %r4}, "
    "{%r5, "
    "%r6, %r7, %r8}, {a0, a1}, {%r1, %r2, %r3, %r4};}",
    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [sv], [%d1], -16, [sv];",
    "cp.async.bulk.global.shared::cta.bulk_group [%d1], [sv], 1048576;",
    // Declared twice
    ".reg .b32 %r1;",
    ".reg .b32 %r<5>;",
    "{.reg .b32 a<5>; .reg .b64 a3;}",
    "{.reg .b32 a<5>; .reg .b64 a<7>;}",
    "{.reg .b32 a<5>; .shared .b32 a3;}",
    ".reg .b32 pv;",
    ".local .b32 pv;",
    "{.reg .b32 a12; {.reg .b64 a<50>; mov.b32 a12, 1;}}",
    "{.reg .b32 a<50>; {.reg .b64 a1<5>; mov.b64 a12, 1;}}",
    // Floats where words are taken
    "redux.sync.or.b32 %r1, 0f3f800000, %r2;",
    "shfl.sync.bfly.b32 %r1, %r2, 1, 31, 0f3f800000;",
    "prmt.b32 %r1, %r2, %r3, 1.5;",
    "cvt.rna.tf32.f32 %r1, 1.5;",
    "tensormap.replace.tile.box_dim.b1024.b32 [%d1], 0, 0f3f800000;",
    // Predicates as numbers, where the comparison is of bf16
    "set.gt.and.bf16.s32 %h1, %r1, %r2, 1;",
    "setp.lt.and.bf16x2 %p1|%p2, %r1, %r2, 1;",
    "set.lt.or.u32.bf16 %r1, %h1, %h2, !0;",
    // Lists of one, and others
    "mov.b32 {_}, %r1;",
    "atom.global.add.u32 _|_, [gv], %r1;",
    "mov.b64 {%r1}, %d1;",
    "mov.b32 {%r1}, {%r2};",
    "mov.b64 %d1, {1.5, 1.5};",
    "mov.b64 %d1, {0f3f800000, 2};",
    "mov.u32 %r1, {%r2};",
    "mov.b64 %d1, {sv};",
    "red.global.add.noftz.v2.f16x2 [gv], {5, %r1};",
    // Numbers of more bits
    "bfe.u32 %r1, %r2, 4294967296, 1;",
    "setmaxnreg.inc.sync.aligned.u32 4294967344;",
    "wgmma.wait_group.sync.aligned -1;",
    "wgmma.wait_group.sync.aligned sv+4;",
    "mbarrier.arrive.shared.b64 %d1, [%r1], -1;",
    // Spaces of addresses
    "cvta.global.u64 %d1, sv;",
    "cvta.const.u64 %d1, gv;",
    "cvta.to.shared.u64 %d1, sv;",
    "mapa.shared::cluster.u32 %r1, lv, 0;",
    "mapa.u64 %d1, %d2, sv;",
    "getctarank.u64 %r1, lv;",
    "ld.param.b32 %r1, [lv];",
    "{.param .b32 q; ld.local.b32 %r1, [q];}",
    "{.param .b32 q; st.b32 [q], %r1;}",
    "{.param .b64 q; mov.b64 %d1, q;}",
    "cp.async.bulk.prefetch.tensor.1d.L2.global [sv, {%r1}];",
    "ldmatrix.sync.aligned.m8n8.x1.b16 {%r1}, [%h1];",
    "tensormap.replace.tile.rank.global.b1024.b32 [%h1], 1;",
    "cp.async.mbarrier.arrive.b64 [%h1];",
    // Sums of matrices
    "mma.sync.aligned.m16n8k16.row.col.f32.e4m3.e4m3.f32 {%r1, %r2, %r3, %r4}, {%r5, %r6}, {%r7}, "
    "{5, %r2, %r3, %r4};",
    "mma.sync.aligned.m16n8k16.row.col.f16.e5m2.e5m2.f16 {_, %r2}, {%r5, %r6}, {%r7}, {%r1, %r2};",
    "{.reg .f32 f; mma.sync.aligned.m8n8k16.row.col.s32.u8.u8.s32 {%r1, %r2}, {f}, {%r3}, {%r4, "
    "%r5};}",
};

enum { TAKEN = sizeof taken / sizeof *taken, REFUSED = sizeof refused / sizeof *refused };

static bool reads(const char *line, tk_sim_note *error) {
    tk_arena a;
    tk_arena_init(&a, NULL, NULL);
    const char *ptx = tk_format(&a, "%s%s\n%s", head, line, tail);
    bool ok = tk_sim_read(&a, ptx, strlen(ptx), error) != NULL;
    if (!ok) {
        cr_expect(error->at.ptx_line == sim_ptxas_lines(head) + 1, "%s: line %u", line,
                  error->at.ptx_line);
        // Of a block, its last statement is the one.
        const char *last = *line == '{' ? strrchr(line, ';') : line;
        while (last > line && last[-1] != ';') {
            last--;
        }
        last += strspn(last, " ");
        const bool declares = *last == '.';
        const char *says =
            declares ? "is declared twice" : tk_strndup(&a, last, strcspn(last, " ;"));
        cr_expect(strstr(error->text, says), "%s: %s", line, error->text);
    }
    tk_arena_release(&a);
    return ok;
}

Test(sim_forms, as_they_are) {
    tk_sim_note error;
    for (size_t k = 0; k < TAKEN; k++) {
        cr_expect(reads(taken[k], &error), "refused: %s", taken[k]);
    }
    for (size_t k = 0; k < REFUSED; k++) {
        cr_expect(!reads(refused[k], &error), "taken: %s", refused[k]);
    }
}

// A generic or global address in 32 bits: ptxas refuses the module, not the line.
Test(sim_forms, narrow_addresses) {
    static const char *const line[] = {"ld.global.b32 %r1, [%r2];", "st.b32 [%r1], %r2;",
                                       "atom.global.add.u32 %r1, [%r2], 1;",
                                       "mbarrier.init.b64 [%r1], 1;"};
    tk_sim_note error;
    for (size_t k = 0; k < sizeof line / sizeof *line; k++) {
        cr_expect(!reads(line[k], &error), "taken: %s", line[k]);
    }
}

// ---- What stands outside of bodies

static const char *const modules[] = {
    ".visible .entry e(.param .b32 _, .param .f16 h, .param .u64 p[2]) .maxnreg 300 { ret; }",
    ".entry e0() .maxclusterrank 32 { ret; }",
    ".entry e(); .entry e() { ret; }",
    ".func f(); .func f() { ret; }",
    ".visible .func f(); .func f() { ret; }",
    ".extern .func malloc(.param .b64 n);",
    ".extern .shared .align 16 .b8 a[], b[];",
    ".global .b32 a = 1, b[2] = {3, 4}, c;",
    ".global .attribute(.managed) .align 8 .b8 m[16];",
    ".global .b32 s = 1.5;",
    ".global .b16 s[2] = {0f3fc00000, 1.5};",
    ".global .b32 s[][2] = {{1}, {3, 4}};",
    ".global .v2 .u32 v[2] = {{5, 6}, {7, 8}};",
    ".global .b32 x; .global .u64 a = x, b = generic(x)+8;",
    ".const .b8 c[65536];",
    ".pragma \"nounroll\";"};

static const char *const no_modules[] = {".func f();",
                                         ".visible .func f();",
                                         ".extern .func f(); .func f() { ret; }",
                                         ".extern .func f() { ret; }",
                                         ".func f(); .visible .func f() { ret; }",
                                         ".func f() { ret; } .func f();",
                                         ".func f(.param .b32 p); .func f(.param .f32 p) { ret; }",
                                         ".func f(.param .b8 p[4][4]) { ret; }",
                                         ".func (.param .b32 p, .param .b32 q) f() { ret; }",
                                         ".func _() { ret; }",
                                         ".func f(.param .f16x2 p) { ret; }",
                                         ".entry e();",
                                         ".entry e(.param .v2 .f32 p) { ret; }",
                                         ".entry e(.param .b8 p[]) { ret; }",
                                         ".entry e() { .reg .b32 _; ret; }",
                                         ".entry e() { .reg .b32 %; ret; }",
                                         ".visible .visible .entry e() { ret; }",
                                         ".common .entry e() { ret; }",
                                         ".common .shared .b32 s;",
                                         ".address_size 64",
                                         ".version 8.0",
                                         ".global .b32 _;",
                                         ".global .bf16 s;",
                                         ".global .u16x2 s;",
                                         ".global .v4 .b64 s;",
                                         ".global .b32 .align 8 s;",
                                         ".global .u32 s = 1.5;",
                                         ".global .u64 s = {5};",
                                         ".global .u64 s[1] = 5;",
                                         ".global .b32 s[2][2] = {1, 2, 3, 4};",
                                         ".global .b32 s[2][2] = {{1, 2, 3}, {4}};",
                                         ".global .b32 s[2][] = {{1}, {3, 4}};",
                                         ".global .v2 .u32 s = {5};",
                                         ".global .v2 .u32 s[2] = {5, 6};",
                                         ".global .b32 x; .global .b64 a = x;",
                                         ".global .b32 x; .global .b64 a = generic(x);",
                                         ".const .b8 c[40000]; .const .b8 d[40000];",
                                         ".shared .attribute(.managed) .b32 m;",
                                         ".pragma;"};

enum {
    MODULES = sizeof modules / sizeof *modules,
    NO_MODULES = sizeof no_modules / sizeof *no_modules
};

static const char *module_of(tk_arena *a, const char *text) {
    return tk_format(a, ".version 8.6\n.target sm_90a\n.address_size 64\n%s\n.entry o() { ret; }\n",
                     text);
}

Test(sim_forms, modules) {
    tk_arena a;
    tk_sim_note error;
    tk_arena_init(&a, NULL, NULL);
    for (size_t k = 0; k < MODULES + NO_MODULES; k++) {
        bool good = k < MODULES;
        const char *text = good ? modules[k] : no_modules[k - MODULES];
        const char *ptx = module_of(&a, text);
        bool ok = tk_sim_read(&a, ptx, strlen(ptx), &error) != NULL;
        cr_expect(ok == good, "%s: %s", text, ok ? "taken" : error.text);
    }
    tk_arena_release(&a);
}

Test(sim_forms, modules_as_ptxas_has_them) {
    tk_arena a;
    tk_arena_init(&a, NULL, NULL);
    if (!sim_ptxas("sm_90a", module_of(&a, ""))) {
        cr_skip_test("no ptxas, or one before PTX 8.6");
    }
    for (size_t k = 0; k < MODULES + NO_MODULES; k++) {
        bool good = k < MODULES;
        const char *text = good ? modules[k] : no_modules[k - MODULES];
        cr_expect(sim_ptxas("sm_90a", module_of(&a, text)) == good, "%s", text);
    }
    tk_arena_release(&a);
}

// What it makes of lines without a sense is not asked.
Test(sim_forms, as_ptxas_has_them) {
    bool good[TAKEN] = {false}, bad[REFUSED] = {false};
    if (!sim_ptxas_refuses("sm_90a", head, taken, TAKEN, tail, good) ||
        !sim_ptxas_refuses("sm_90a", head, refused, REFUSED, tail, bad)) {
        cr_skip_test("no ptxas, or one before PTX 8.6");
    }
    for (size_t k = 0; k < TAKEN; k++) {
        cr_expect(!good[k], "ptxas refuses: %s", taken[k]);
    }
    for (size_t k = 0; k < REFUSED; k++) {
        cr_expect(bad[k], "ptxas takes: %s", refused[k]);
    }
}
