// PASSES: absorb-loops
//
// Rows that do not need each other are one nest.

// CHECK-LABEL: func.func @main
// CHECK:         affine.for %[[I:.*]] = 0 to 6 {
// CHECK-NEXT:      affine.for %[[J:.*]] = 0 to 8 {
// CHECK:             affine.load %arg0[%[[I]], %[[J]]]
// CHECK:             affine.store %{{.*}}, %arg1[%[[I]], %[[J]]]
// CHECK-NOT:     polyblocks.region
//
// From the inside out: a loop around a loop.
//
// CHECK:         affine.for %[[K:.*]] = 0 to 3 {
// CHECK-NEXT:      affine.for %[[L:.*]] = 0 to 6 {
// CHECK-NEXT:        affine.for %[[M:.*]] = 0 to 8 {
// CHECK:               affine.store %{{.*}}, %arg2[%[[K]], %[[L]], %[[M]]]
// CHECK-NOT:     polyblocks.region
//
// Rows that are sums of the rows before them stay apart, and so do two nests, and one that stores to
// the same place every time.
//
// CHECK:         affine.for
// CHECK:           affine.store %{{.*}}, %arg1[%{{.*}} + 1, %{{.*}}]
// CHECK:         polyblocks.region = "loop4"
// CHECK:         affine.for
// CHECK:         polyblocks.region = "loop5"
// CHECK:         affine.for
// CHECK:         polyblocks.region = "loop6"
func.func @main(%a: memref<6x8xf32>, %b: memref<7x8xf32>, %c: memref<3x6x8xf32>, %d: memref<8xf32>) {
  affine.for %i = 0 to 6 {
    affine.for %j = 0 to 8 {
      %x = affine.load %a[%i, %j] : memref<6x8xf32>
      %y = arith.mulf %x, %x : f32
      affine.store %y, %b[%i, %j] : memref<7x8xf32>
    }
  } {polyblocks.region = "loop1"}
  affine.for %k = 0 to 3 {
    affine.for %i = 0 to 6 {
      affine.for %j = 0 to 8 {
        %x = affine.load %a[%i, %j] : memref<6x8xf32>
        affine.store %x, %c[%k, %i, %j] : memref<3x6x8xf32>
      }
    } {polyblocks.region = "loop3"}
  } {polyblocks.region = "loop2"}
  affine.for %i = 0 to 6 {
    affine.for %j = 0 to 8 {
      %x = affine.load %b[%i, %j] : memref<7x8xf32>
      %y = arith.mulf %x, %x : f32
      affine.store %y, %b[%i + 1, %j] : memref<7x8xf32>
    }
  } {polyblocks.region = "loop4"}
  affine.for %i = 0 to 6 {
    affine.for %j = 0 to 8 {
      %x = affine.load %a[%i, %j] : memref<6x8xf32>
      affine.store %x, %b[%i, %j] : memref<7x8xf32>
    }
    affine.for %j = 0 to 8 {
      %x = affine.load %a[%i, %j] : memref<6x8xf32>
      affine.store %x, %c[0, %i, %j] : memref<3x6x8xf32>
    }
  } {polyblocks.region = "loop5"}
  affine.for %i = 0 to 6 {
    affine.for %j = 0 to 8 {
      %x = affine.load %a[%i, %j] : memref<6x8xf32>
      affine.store %x, %d[%j] : memref<8xf32>
    }
  } {polyblocks.region = "loop6"}
  return
}
