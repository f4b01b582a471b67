// PASSES: fuse-slices
//
// Loops that count through one dimension together, as those of a grouped convolution: what the sums
// start with moves in, what comes after moves behind. A consumer that would have to take a number
// apart into these loops reads the buffer.

// CHECK-LABEL: func.func @main
// CHECK-NOT:     memref.alloc
// CHECK:         affine.for %[[G:.*]] = 0 to 4 {
// CHECK-NEXT:      affine.for %[[O:.*]] = 0 to 5 {
// CHECK-NEXT:        %[[B:.*]] = affine.load %arg1[%[[G]] * 5 + %[[O]]]
// CHECK-NEXT:        affine.for %{{.*}} = 0 to 8 iter_args(%{{.*}} = %[[B]])
// CHECK:             arith.negf
// CHECK-NEXT:        affine.store %{{.*}}, %arg2[%[[G]] * 5 + %[[O]]]
// CHECK:         %[[KEPT:.*]] = memref.alloc
// CHECK:           affine.store %{{.*}}, %[[KEPT]][%{{.*}} * 5 + %{{.*}}]
// CHECK:           affine.load %[[KEPT]]
func.func @main(%a: memref<8x20xf32>, %b: memref<20xf32>, %c: memref<20xf32>, %d: memref<20xf32>) {
  %t = memref.alloc() : memref<20xf32>
  affine.for %i = 0 to 20 {
    %x = affine.load %b[%i] : memref<20xf32>
    affine.store %x, %t[%i] : memref<20xf32>
  }
  %u = memref.alloc() : memref<20xf32>
  affine.for %g = 0 to 4 {
    affine.for %o = 0 to 5 {
      %z = affine.load %t[%g * 5 + %o] : memref<20xf32>
      %r = affine.for %k = 0 to 8 iter_args(%s = %z) -> (f32) {
        %x = affine.load %a[%k, %g * 5 + %o] : memref<8x20xf32>
        %n = arith.addf %s, %x : f32
        affine.yield %n : f32
      }
      affine.store %r, %u[%g * 5 + %o] : memref<20xf32>
    }
  }
  affine.for %i = 0 to 20 {
    %x = affine.load %u[%i] : memref<20xf32>
    %y = arith.negf %x : f32
    affine.store %y, %c[%i] : memref<20xf32>
  }
  %v = memref.alloc() : memref<20xf32>
  affine.for %g = 0 to 4 {
    affine.for %o = 0 to 5 {
      %x = affine.load %a[%g, %o] : memref<8x20xf32>
      affine.store %x, %v[%g * 5 + %o] : memref<20xf32>
    }
  }
  affine.for %i = 0 to 19 {
    %x = affine.load %v[%i + 1] : memref<20xf32>
    affine.store %x, %d[%i] : memref<20xf32>
  }
  return
}
