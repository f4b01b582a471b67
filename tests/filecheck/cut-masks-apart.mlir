// PASSES: cut-masks
// ARCH: x86-64-v4
//
// No loop gets a bound where what a mask leaves out counts all the same: it gives zero, which an
// infinite or missing factor would show through; or it leaves out all places of some tile, whose
// rows then have the result that arithmetic gives.

// CHECK-LABEL: func.func @main
// CHECK-NOT:     = {{.*}} to #
// CHECK-NOT:     = max
// CHECK:         return
func.func @main(%a: memref<512x512xf32>, %v: memref<512x8xf32>, %out: memref<512x8xf32>, %last: memref<512xf32>) {
  affine.for %t = 0 to 16 {
    %p = memref.alloca() : memref<32x512xf32>
    affine.for %i = 0 to 32 {
      affine.for %j = 0 to 512 {
        %zero = arith.constant 0.0 : f32
        %row = affine.apply affine_map<(d0, d1) -> (d0 * 32 + d1)>(%t, %i)
        %b = arith.cmpi sle, %j, %row : index
        %x = affine.load %a[%t * 32 + %i, %j] : memref<512x512xf32>
        %y = arith.select %b, %x, %zero : f32
        affine.store %y, %p[%i, %j] : memref<32x512xf32>
      }
    }
    affine.for %i = 0 to 32 {
      affine.for %d = 0 to 8 {
        %zero = arith.constant 0.0 : f32
        %0 = affine.for %j = 0 to 512 iter_args(%sum = %zero) -> (f32) {
          %x = affine.load %p[%i, %j] : memref<32x512xf32>
          %y = affine.load %v[%j, %d] : memref<512x8xf32>
          %xy = arith.mulf %x, %y : f32
          %n = arith.addf %sum, %xy : f32
          affine.yield %n : f32
        }
        affine.store %0, %out[%t * 32 + %i, %d] : memref<512x8xf32>
      }
    }
  } {polyblocks.tile}
  affine.for %t = 0 to 16 {
    %m = memref.alloca() : memref<32x512xf32>
    affine.for %i = 0 to 32 {
      affine.for %j = 0 to 512 {
        %low = arith.constant 0xFF800000 : f32
        %row = affine.apply affine_map<(d0, d1) -> (d0 * 32 + d1 - 100)>(%t, %i)
        %b = arith.cmpi sle, %j, %row : index
        %x = affine.load %a[%t * 32 + %i, %j] : memref<512x512xf32>
        %y = arith.select %b, %x, %low : f32
        affine.store %y, %m[%i, %j] : memref<32x512xf32>
      }
    }
    affine.for %i = 0 to 32 {
      %low = arith.constant 0xFF800000 : f32
      %0 = affine.for %j = 0 to 512 iter_args(%most = %low) -> (f32) {
        %x = affine.load %m[%i, %j] : memref<32x512xf32>
        %n = arith.maximumf %x, %most : f32
        affine.yield %n : f32
      }
      affine.store %0, %last[%t * 32 + %i] : memref<512xf32>
    }
  } {polyblocks.tile}
  return
}
