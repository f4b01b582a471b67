// PASSES: map-parallelism
//
// Big and independent: a team. Small: a loop. Dependent from one iteration to the next: a loop.
// Three long rows, or one more than there are threads: blocks of the rows; not where the innermost
// loop depends.

// CHECK-LABEL: func.func @main
// CHECK:         affine.parallel (%{{.*}}) = (0) to (4096) {
// CHECK-NEXT:      affine.for %{{.*}} = 0 to 512 {
// CHECK:         polyblocks.level = "team"
// CHECK:         affine.for %{{.*}} = 0 to 8 {
// CHECK:         affine.for %{{.*}} = 0 to 2097151 {
// CHECK-NOT:     affine.parallel (%{{.*}}) = (0) to (2097151)
// CHECK:         affine.parallel (%[[T:[a-z0-9]+]]) = (0) to (384) {
// CHECK-NEXT:      affine.for %[[J:[a-z0-9]+]] = 0 to 8192 {
// CHECK-NEXT:        affine.load %{{.*}}[%[[T]] floordiv 128, %[[J]] + (%[[T]] mod 128) * 8192]
// CHECK:         affine.parallel (%[[T:[a-z0-9]+]]) = (0) to (387) {
// CHECK-NEXT:      affine.for %[[J:[a-z0-9]+]] = 0 to min #{{.*}}(%[[T]]) {
// CHECK:         affine.parallel (%{{.*}}) = (0) to (3) {
// CHECK-NEXT:      affine.for %{{.*}} = 0 to 1048575 {
func.func @main(%a: memref<64x64x512xf32>, %b: memref<8xf32>, %c: memref<2097152xf32>, %d: memref<3x1048576xf32>, %e: memref<3x1048577xf32>) {
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 64 {
      affine.for %k = 0 to 512 {
        %x = affine.load %a[%i, %j, %k] : memref<64x64x512xf32>
        %y = arith.negf %x : f32
        affine.store %y, %a[%i, %j, %k] : memref<64x64x512xf32>
      }
    }
  }
  affine.for %i = 0 to 8 {
    %x = affine.load %b[%i] : memref<8xf32>
    affine.store %x, %b[%i] : memref<8xf32>
  }
  affine.for %i = 0 to 2097151 {
    %x = affine.load %c[%i] : memref<2097152xf32>
    %y = affine.load %c[%i + 1] : memref<2097152xf32>
    %z = arith.addf %x, %y : f32
    affine.store %z, %c[%i + 1] : memref<2097152xf32>
  }
  affine.for %i = 0 to 3 {
    affine.for %j = 0 to 1048576 {
      %x = affine.load %d[%i, %j] : memref<3x1048576xf32>
      %y = arith.negf %x : f32
      affine.store %y, %d[%i, %j] : memref<3x1048576xf32>
    }
  }
  affine.for %i = 0 to 3 {
    affine.for %j = 0 to 1048577 {
      %x = affine.load %e[%i, %j] : memref<3x1048577xf32>
      %y = arith.negf %x : f32
      affine.store %y, %e[%i, %j] : memref<3x1048577xf32>
    }
  }
  affine.for %i = 0 to 3 {
    affine.for %j = 0 to 1048575 {
      %x = affine.load %d[%i, %j] : memref<3x1048576xf32>
      affine.store %x, %d[%i, %j + 1] : memref<3x1048576xf32>
    }
  }
  return
}
