// PASSES: lower-group-units
// TARGET: nvgpu sm_90a
//
// Addresses become descriptors: 14 bits of the address in units of 16 bytes, the distance of panels
// and of groups of eight lines, and the swizzle of 128 bytes. What is no operand is in the name. Bytes
// behind a place are added to the place's descriptor, in units of 16. A first operand in registers is
// an operand as it is, and sums that are constant zeros are none.

// CHECK:       llvm.func @polyblocks.wgmma.wait.1.f32.2(f32, f32) -> !llvm.struct<(f32, f32)> attributes {convergent, no_unwind}
// CHECK:       llvm.func @polyblocks.wgmma.m64n64k16.f32.f16.01(f32, f32, i64, i64) -> !llvm.struct<(f32, f32)>
// CHECK-LABEL: llvm.func @k
// CHECK:         %[[A:.*]] = llvm.ptrtoint %arg0 : !llvm.ptr<3> to i32
// CHECK:         %[[MASK:.*]] = llvm.mlir.constant(262143 : i32)
// CHECK:         %[[B:.*]] = llvm.and %[[A]], %[[MASK]]
// CHECK:         %[[FOUR:.*]] = llvm.mlir.constant(4 : i32)
// CHECK:         %[[C:.*]] = llvm.lshr %[[B]], %[[FOUR]]
// CHECK:         %[[ROWS:.*]] = llvm.mlir.constant(4194304 : i32)
// CHECK:         %[[D:.*]] = llvm.or %[[C]], %[[ROWS]]
// CHECK:         %[[WIDE:.*]] = llvm.zext %[[D]] : i32 to i64
// CHECK:         %[[LINES:.*]] = llvm.mlir.constant(4611686293305294848 : i64)
// CHECK:         %[[E:.*]] = llvm.or %[[WIDE]], %[[LINES]]
// CHECK:         llvm.trunc %arg4 : i64 to i32
// CHECK:         %[[PANELS:.*]] = llvm.mlir.constant(33554432 : i32)
// CHECK:         %[[G:.*]] = llvm.or %{{.*}}, %[[PANELS]]
// CHECK:         %[[BEHIND:.*]] = llvm.mlir.constant(6 : i32)
// CHECK:         llvm.add %[[G]], %[[BEHIND]]
// CHECK:         %[[F:.*]] = llvm.or
// CHECK:         llvm.call @polyblocks.wgmma.m64n64k16.f32.f16.01(%arg2, %arg3, %[[E]], %[[F]])
// CHECK:         llvm.call @polyblocks.wgmma.wait.1.f32.2(
// CHECK:         llvm.call @polyblocks.wgmma.m64n64k16.f32.f16.r1.new(%arg5, %arg5, %arg5, %arg5, %{{.*}}) : (i32, i32, i32, i32, i64)
// CHECK:         llvm.call @polyblocks.wgmma.m64n64k16.f32.f16.r0(%{{.*}}, %{{.*}}, %arg5, %arg5, %arg5, %arg5, %{{.*}}) : (f32, f32, i32, i32, i32, i32, i64)
// CHECK-NOT:     call_intrinsic
gpu.module @kernels {
  llvm.func @k(%a: !llvm.ptr<3>, %unused: i64, %s: f32, %t: f32, %place: i64, %w: i32) attributes {gpu.kernel, nvvm.kernel} {
    %c32 = llvm.mlir.constant(32 : i64) : i64
    %c64 = llvm.mlir.constant(64 : i64) : i64
    %x = llvm.add %place, %c32 : i64
    %y = llvm.add %x, %c64 : i64
    %b = llvm.inttoptr %y : i64 to !llvm.ptr<3>
    %no = llvm.mlir.constant(false) : i1
    %yes = llvm.mlir.constant(true) : i1
    %rows = llvm.mlir.constant(1024 : i32) : i32
    %panels = llvm.mlir.constant(8192 : i32) : i32
    %one = llvm.mlir.constant(1 : i32) : i32
    %r = llvm.call_intrinsic "llvm.polyblocks.wgmma.m64n64k16.f32.f16"(%a, %b, %no, %yes, %rows, %panels, %s, %t) : (!llvm.ptr<3>, !llvm.ptr<3>, i1, i1, i32, i32, f32, f32) -> !llvm.struct<(f32, f32)>
    %u = llvm.extractvalue %r[0] : !llvm.struct<(f32, f32)>
    %v = llvm.extractvalue %r[1] : !llvm.struct<(f32, f32)>
    %done = llvm.call_intrinsic "llvm.polyblocks.wgmma.wait"(%one, %u, %v) : (i32, f32, f32) -> !llvm.struct<(f32, f32)>
    %zero = llvm.mlir.constant(0.0 : f32) : f32
    %new = llvm.call_intrinsic "llvm.polyblocks.wgmma.registers.m64n64k16.f32.f16"(%b, %yes, %panels, %w, %w, %w, %w, %zero, %zero) : (!llvm.ptr<3>, i1, i32, i32, i32, i32, i32, f32, f32) -> !llvm.struct<(f32, f32)>
    %x0 = llvm.extractvalue %new[0] : !llvm.struct<(f32, f32)>
    %add = llvm.call_intrinsic "llvm.polyblocks.wgmma.registers.m64n64k16.f32.f16"(%b, %no, %panels, %w, %w, %w, %w, %x0, %zero) : (!llvm.ptr<3>, i1, i32, i32, i32, i32, i32, f32, f32) -> !llvm.struct<(f32, f32)>
    llvm.return
  }
}
