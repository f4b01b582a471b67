// PASSES: hoist-factors
// ARCH: x86-64-v3
//
// Rows of a softmax are divided by their sums behind the product with fewer columns; the nest that
// divided is gone. Not so where the product has more columns, or where a divisor differs from step
// to step.

// CHECK-LABEL: func.func @main
// CHECK-SAME:    %[[E:[a-z0-9]+]]: memref<64x128xf32>, %[[S:[a-z0-9]+]]: memref<64xf32>
// CHECK:         affine.for %[[I:.*]] = 0 to 64 {
// CHECK-NEXT:      affine.for %[[D:.*]] = 0 to 16 {
// CHECK:             %[[R:.*]] = affine.for %[[J:.*]] = 0 to 128 iter_args
// CHECK-NEXT:          affine.load %[[E]][%[[I]], %[[J]]]
// CHECK-NOT:           arith.divf
// CHECK:             affine.yield
// CHECK:             %[[T:.*]] = affine.load %[[S]][%[[I]]]
// CHECK-NEXT:        arith.divf %[[R]], %[[T]]
// CHECK:         arith.divf
// CHECK-NEXT:    affine.store %{{.*}}, %[[P:.*]][%{{.*}}, %{{.*}}]
// CHECK:         iter_args
// CHECK-NEXT:      affine.load %[[P]]
// CHECK:         arith.divf
// CHECK-NEXT:    affine.store %{{.*}}, %[[Q:.*]][%{{.*}}, %{{.*}}]
// CHECK:         iter_args
// CHECK-NEXT:      affine.load %[[Q]]
// CHECK-NOT:     arith.divf
func.func @main(%e: memref<64x128xf32>, %s: memref<64xf32>, %c: memref<128xf32>, %v: memref<128x16xf32>, %w: memref<128x256xf32>, %o: memref<64x16xf32>, %o2: memref<64x256xf32>, %o3: memref<64x16xf32>) {
  %zero = arith.constant 0.0 : f32
  %p1 = memref.alloc() : memref<64x128xf32>
  %q = memref.alloc() : memref<64x128xf32>
  %u = memref.alloc() : memref<64x128xf32>
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 128 {
      %a = affine.load %e[%i, %j] : memref<64x128xf32>
      %b = affine.load %s[%i] : memref<64xf32>
      %p = arith.divf %a, %b fastmath<reassoc,contract> : f32
      affine.store %p, %p1[%i, %j] : memref<64x128xf32>
    }
  }
  affine.for %i = 0 to 64 {
    affine.for %d = 0 to 16 {
      %r = affine.for %j = 0 to 128 iter_args(%x = %zero) -> (f32) {
        %a = affine.load %p1[%i, %j] : memref<64x128xf32>
        %b = affine.load %v[%j, %d] : memref<128x16xf32>
        %p = arith.mulf %a, %b fastmath<reassoc,contract> : f32
        %t = arith.addf %x, %p fastmath<reassoc,contract> : f32
        affine.yield %t : f32
      }
      affine.store %r, %o[%i, %d] : memref<64x16xf32>
    }
  }
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 128 {
      %a = affine.load %e[%i, %j] : memref<64x128xf32>
      %b = affine.load %s[%i] : memref<64xf32>
      %p = arith.divf %a, %b fastmath<reassoc,contract> : f32
      affine.store %p, %q[%i, %j] : memref<64x128xf32>
    }
  }
  affine.for %i = 0 to 64 {
    affine.for %d = 0 to 256 {
      %r = affine.for %j = 0 to 128 iter_args(%x = %zero) -> (f32) {
        %a = affine.load %q[%i, %j] : memref<64x128xf32>
        %b = affine.load %w[%j, %d] : memref<128x256xf32>
        %p = arith.mulf %a, %b fastmath<reassoc,contract> : f32
        %t = arith.addf %x, %p fastmath<reassoc,contract> : f32
        affine.yield %t : f32
      }
      affine.store %r, %o2[%i, %d] : memref<64x256xf32>
    }
  }
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 128 {
      %a = affine.load %e[%i, %j] : memref<64x128xf32>
      %b = affine.load %c[%j] : memref<128xf32>
      %p = arith.divf %a, %b fastmath<reassoc,contract> : f32
      affine.store %p, %u[%i, %j] : memref<64x128xf32>
    }
  }
  affine.for %i = 0 to 64 {
    affine.for %d = 0 to 16 {
      %r = affine.for %j = 0 to 128 iter_args(%x = %zero) -> (f32) {
        %a = affine.load %u[%i, %j] : memref<64x128xf32>
        %b = affine.load %v[%j, %d] : memref<128x16xf32>
        %p = arith.mulf %a, %b fastmath<reassoc,contract> : f32
        %t = arith.addf %x, %p fastmath<reassoc,contract> : f32
        affine.yield %t : f32
      }
      affine.store %r, %o3[%i, %d] : memref<64x16xf32>
    }
  }
  return
}
