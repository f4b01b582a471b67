// PASSES: classify-nests,fuse-sibling-loops
//
// Each loop stores what the other one leaves out.

// CHECK-LABEL: func.func @main
// CHECK:         affine.for %[[I:.*]] = 0 to 8 {
// CHECK-NEXT:      affine.for %[[J:.*]] = 0 to 500 {
// CHECK-NEXT:        affine.load %arg0
// CHECK-NEXT:        affine.store %{{.*}}, %arg2[%[[I]], %[[J]] * 2]
// CHECK-NEXT:        affine.load %arg1
// CHECK-NEXT:        affine.store %{{.*}}, %arg2[%[[I]], %[[J]] * 2 + 1]
//
// The same where a dimension of its own says which elements.
//
// CHECK:         affine.for %[[I:.*]] = 0 to 8 {
// CHECK-NEXT:      affine.for %[[J:.*]] = 0 to 500 {
// CHECK-NEXT:        affine.load %arg0
// CHECK-NEXT:        affine.store %{{.*}}, %arg9[%[[I]], %[[J]], 0]
// CHECK-NEXT:        affine.load %arg1
// CHECK-NEXT:        affine.store %{{.*}}, %arg9[%[[I]], %[[J]], 1]
//
// Other rows, and other elements further on, have nothing in common.
//
// CHECK:         affine.for
// CHECK:           affine.store %{{.*}}, %arg3[%[[I:.*]] * 2, %{{.*}}]
// CHECK:         affine.for
// CHECK:           affine.store %{{.*}}, %arg3[%[[I:.*]] * 2 + 1, %{{.*}}]
// CHECK:         affine.for
// CHECK:           affine.store %{{.*}}, %arg4[%[[I:.*]], %{{.*}}]
// CHECK:         affine.for
// CHECK:           affine.store %{{.*}}, %arg4[%[[I:.*]], %{{.*}} + 500]
func.func @main(%a: memref<8x500xf32>, %b: memref<8x500xf32>, %c: memref<8x1000xf32>,
                %d: memref<16x500xf32>, %e: memref<8x1000xf32>,
                %f: memref<8x500xf32>, %g: memref<8x500xf32>, %h: memref<8x500xf32>, %k: memref<8x500xf32>,
                %m: memref<8x500x2xf32>) {
  affine.for %i = 0 to 8 {
    affine.for %j = 0 to 500 {
      %x = affine.load %a[%i, %j] : memref<8x500xf32>
      affine.store %x, %c[%i, %j * 2] : memref<8x1000xf32>
    }
  }
  affine.for %i = 0 to 8 {
    affine.for %j = 0 to 500 {
      %x = affine.load %b[%i, %j] : memref<8x500xf32>
      affine.store %x, %c[%i, %j * 2 + 1] : memref<8x1000xf32>
    }
  }
  affine.for %i = 0 to 8 {
    affine.for %j = 0 to 500 {
      %x = affine.load %a[%i, %j] : memref<8x500xf32>
      affine.store %x, %m[%i, %j, 0] : memref<8x500x2xf32>
    }
  }
  affine.for %i = 0 to 8 {
    affine.for %j = 0 to 500 {
      %x = affine.load %b[%i, %j] : memref<8x500xf32>
      affine.store %x, %m[%i, %j, 1] : memref<8x500x2xf32>
    }
  }
  affine.for %i = 0 to 8 {
    affine.for %j = 0 to 500 {
      %x = affine.load %f[%i, %j] : memref<8x500xf32>
      affine.store %x, %d[%i * 2, %j] : memref<16x500xf32>
    }
  }
  affine.for %i = 0 to 8 {
    affine.for %j = 0 to 500 {
      %x = affine.load %g[%i, %j] : memref<8x500xf32>
      affine.store %x, %d[%i * 2 + 1, %j] : memref<16x500xf32>
    }
  }
  affine.for %i = 0 to 8 {
    affine.for %j = 0 to 500 {
      %x = affine.load %h[%i, %j] : memref<8x500xf32>
      affine.store %x, %e[%i, %j] : memref<8x1000xf32>
    }
  }
  affine.for %i = 0 to 8 {
    affine.for %j = 0 to 500 {
      %x = affine.load %k[%i, %j] : memref<8x500xf32>
      affine.store %x, %e[%i, %j + 500] : memref<8x1000xf32>
    }
  }
  return
}
