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
// Many rows of two nests, with an array of their own.
//
// CHECK:         affine.for %[[N:.*]] = 0 to 4096 {
// CHECK-NEXT:      %[[T:.*]] = memref.alloca() {{.*}}: memref<8xf32>
// CHECK:           affine.store %{{.*}}, %[[T]][%{{.*}}]
// CHECK:           affine.load %[[T]][{{.*}}]
// CHECK:           affine.store %{{.*}}, %arg4[%[[N]], %{{.*}}]
// CHECK-NOT:     polyblocks.region
//
// Rows that are made of the rows before them stay apart, and so do few rows of two nests, and rows
// that are stored to the same place.
//
// CHECK:         affine.for
// CHECK:           affine.store %{{.*}}, %arg1[%{{.*}} + 1, %{{.*}}]
// CHECK:         polyblocks.region = "loop4"
// CHECK:         affine.for
// CHECK:         polyblocks.region = "loop5"
// CHECK:         affine.for
// CHECK:         polyblocks.region = "loop6"
func.func @main(%a: memref<6x8xf32>, %b: memref<7x8xf32>, %c: memref<3x6x8xf32>, %d: memref<8xf32>, %e: memref<4096x8xf32>) {
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
  affine.for %i = 0 to 4096 {
    %t = memref.alloc() : memref<8xf32>
    affine.for %j = 0 to 8 {
      %x = affine.load %d[%j] : memref<8xf32>
      %y = arith.mulf %x, %x : f32
      affine.store %y, %t[%j] : memref<8xf32>
    }
    affine.for %j = 0 to 8 {
      %x = affine.load %t[7 - %j] : memref<8xf32>
      affine.store %x, %e[%i, %j] : memref<4096x8xf32>
    }
  } {polyblocks.region = "loop7"}
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
