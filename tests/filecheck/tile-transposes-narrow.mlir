// PASSES: tile-transposes
//
// Squares are as wide as the shorter side of a nest, if that is less than a vector.

// CHECK-LABEL: func.func @main
// CHECK:         affine.for %{{.*}} = 0 to 2 {
// CHECK-NEXT:      affine.for %{{.*}} = 0 to 8 {
// CHECK-NEXT:        affine.for %{{.*}} = 0 to 8 {
// CHECK-NEXT:          affine.load
// CHECK-NEXT:          affine.store
func.func @main(%a: memref<31x8x16xf32>, %b: memref<31x16x8xf32>) {
  affine.for %r = 0 to 31 {
    affine.for %i = 0 to 8 {
      affine.for %j = 0 to 16 {
        %x = affine.load %a[%r, %i, %j] : memref<31x8x16xf32>
        affine.store %x, %b[%r, %j, %i] : memref<31x16x8xf32>
      }
    }
  }
  return
}
