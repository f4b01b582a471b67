// PASSES: choose-kernels,stage-operands,emit-kernels
// TARGET: nvgpu sm_80
//
// Tiles reach beyond the last of 49 columns. What is added to the sums of a row is loaded and
// converted once, under no condition, at a row that exists; so is an element that is added, at its
// place or one that exists. Only what uses a sum is under the element's condition.

// CHECK:         llvm.call_intrinsic "llvm.nvvm.mma.m16n8k16
// CHECK-COUNT-2: memref.load %arg2
// CHECK-NOT:     memref.load %arg2
// CHECK-NOT:     scf.if
// CHECK-COUNT-8: memref.load %arg3
// CHECK-NOT:     memref.load
// CHECK:         scf.if
// CHECK-NOT:       memref.load
// CHECK:           memref.store
// CHECK-NOT:     memref.load
// CHECK:         gpu.return
func.func @main(%a: memref<256x512xf16>, %b: memref<512x49xf16>, %d: memref<256xf16>, %e: memref<256x49xf16>, %c: memref<256x49xf16>) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 256 {
    affine.for %j = 0 to 49 {
      %s = affine.for %k = 0 to 512 iter_args(%t = %zero) -> (f32) {
        %x = affine.load %a[%i, %k] : memref<256x512xf16>
        %y = affine.load %b[%k, %j] : memref<512x49xf16>
        %u = arith.extf %x : f16 to f32
        %v = arith.extf %y : f16 to f32
        %z = arith.mulf %u, %v fastmath<reassoc,contract> : f32
        %w = arith.addf %t, %z fastmath<reassoc,contract> : f32
        affine.yield %w : f32
      }
      %p = affine.load %d[%i] : memref<256xf16>
      %q = arith.extf %p : f16 to f32
      %r = arith.addf %s, %q : f32
      %h = arith.truncf %r : f32 to f16
      %f = affine.load %e[%i, %j] : memref<256x49xf16>
      %g = arith.addf %h, %f : f16
      affine.store %g, %c[%i, %j] : memref<256x49xf16>
    }
  }
  return
}
