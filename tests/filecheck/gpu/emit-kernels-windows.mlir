// PASSES: choose-kernels,stage-operands,emit-kernels
// TARGET: nvgpu sm_80
//
// Elements of windows, which come one by one while products are computed, are put together where
// they are stored, behind the products: an assembler keeps that order, and in front of them a warp
// would wait for the loads.

// CHECK:         scf.for
// CHECK-COUNT-72:  memref.load %reinterpret_cast
// CHECK-NOT:       vector.from_elements
// CHECK:           llvm.call_intrinsic "llvm.nvvm.mma.m16n8k16
// CHECK:           vector.from_elements
// CHECK-NOT:       llvm.nvvm.mma
// CHECK:           gpu.barrier
module {
  func.func @main(%a: memref<128x30x30xf16>, %b: memref<128x128x3x3xf16>, %c: memref<128x28x28xf16>) {
    %zero = arith.constant 0.0 : f32
    affine.for %o = 0 to 128 {
      affine.for %i = 0 to 28 {
        affine.for %j = 0 to 28 {
          %r = affine.for %q = 0 to 128 iter_args(%r0 = %zero) -> (f32) {
            %s = affine.for %k = 0 to 3 iter_args(%s0 = %r0) -> (f32) {
              %t = affine.for %l = 0 to 3 iter_args(%t0 = %s0) -> (f32) {
                %x = affine.load %a[%q, %i + %k, %j + %l] : memref<128x30x30xf16>
                %y = affine.load %b[%o, %q, %k, %l] : memref<128x128x3x3xf16>
                %u = arith.extf %x : f16 to f32
                %v = arith.extf %y : f16 to f32
                %z = arith.mulf %u, %v fastmath<reassoc,contract> : f32
                %w = arith.addf %t0, %z fastmath<reassoc,contract> : f32
                affine.yield %w : f32
              }
              affine.yield %t : f32
            }
            affine.yield %s : f32
          }
          %h = arith.truncf %r : f32 to f16
          affine.store %h, %c[%o, %i, %j] : memref<128x28x28xf16>
        }
      }
    }
    return
  }
}
