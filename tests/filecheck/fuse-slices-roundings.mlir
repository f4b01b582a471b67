// PASSES: fuse-slices
//
// A factor is rounded to 16 bits for a unit that multiplies such numbers. Where there is none, and
// the rounding is not the program's, it stays as it is. What the program rounds is rounded, and so
// is what it extends itself.

// CHECK-LABEL: func.func @main
// CHECK-NOT:     memref<8x64xf16>
// CHECK:         affine.for %{{.*}} iter_args
// CHECK-NEXT:      %[[X:.*]] = affine.load %arg0
// CHECK-NEXT:      %[[Y:.*]] = affine.load %arg1
// CHECK-NEXT:      %[[W:.*]] = arith.extf %[[Y]] {polyblocks.free_rounding} : f16 to f32
// CHECK-NEXT:      arith.mulf %[[X]], %[[W]]
// CHECK:         affine.for %{{.*}} iter_args
// CHECK:           arith.truncf {{.*}} : f32 to bf16
// CHECK:           arith.extf {{.*}} : bf16 to f32
// CHECK:           arith.truncf {{.*}} : f32 to bf16
// CHECK-NEXT:      arith.extf {{.*}} : bf16 to f32
func.func @main(%a: memref<8x64xf32>, %b: memref<64x8xf16>, %c: memref<8x8xf32>,
                %d: memref<8x8xf32>, %e: memref<8x64xf32>) {
  %z = arith.constant 0.0 : f32
  %s = memref.alloc() : memref<8x64xf16>
  %t = memref.alloc() : memref<8x64xbf16>
  affine.for %i = 0 to 8 {
    affine.for %k = 0 to 64 {
      %x = affine.load %a[%i, %k] : memref<8x64xf32>
      %y = arith.truncf %x {polyblocks.free_rounding} : f32 to f16
      affine.store %y, %s[%i, %k] : memref<8x64xf16>
    }
  }
  affine.for %i = 0 to 8 {
    affine.for %j = 0 to 8 {
      %r = affine.for %k = 0 to 64 iter_args(%u = %z) -> (f32) {
        %x = affine.load %s[%i, %k] : memref<8x64xf16>
        %y = affine.load %b[%k, %j] : memref<64x8xf16>
        %v = arith.extf %x {polyblocks.free_rounding} : f16 to f32
        %w = arith.extf %y {polyblocks.free_rounding} : f16 to f32
        %p = arith.mulf %v, %w : f32
        %q = arith.addf %u, %p : f32
        affine.yield %q : f32
      }
      affine.store %r, %c[%i, %j] : memref<8x8xf32>
    }
  }
  affine.for %i = 0 to 8 {
    affine.for %k = 0 to 64 {
      %x = affine.load %a[%i, %k] : memref<8x64xf32>
      %y = arith.truncf %x : f32 to bf16
      affine.store %y, %t[%i, %k] : memref<8x64xbf16>
    }
  }
  affine.for %i = 0 to 8 {
    affine.for %j = 0 to 8 {
      %r = affine.for %k = 0 to 64 iter_args(%u = %z) -> (f32) {
        %x = affine.load %t[%i, %k] : memref<8x64xbf16>
        %y = affine.load %b[%k, %j] : memref<64x8xf16>
        %v = arith.extf %x : bf16 to f32
        %w = arith.extf %y : f16 to f32
        %p = arith.mulf %v, %w : f32
        %q = arith.addf %u, %p : f32
        affine.yield %q : f32
      }
      affine.store %r, %d[%i, %j] : memref<8x8xf32>
    }
  }
  %f = memref.alloc() : memref<8x64xbf16>
  affine.for %i = 0 to 8 {
    affine.for %k = 0 to 64 {
      %x = affine.load %a[%i, %k] : memref<8x64xf32>
      %y = arith.truncf %x {polyblocks.free_rounding} : f32 to bf16
      affine.store %y, %f[%i, %k] : memref<8x64xbf16>
    }
  }
  affine.for %i = 0 to 8 {
    affine.for %k = 0 to 64 {
      %x = affine.load %f[%i, %k] : memref<8x64xbf16>
      %y = arith.extf %x : bf16 to f32
      affine.store %y, %e[%i, %k] : memref<8x64xf32>
    }
  }
  return
}
