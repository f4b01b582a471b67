// PASSES: normalize-nests
//
// Bounds that are affine in outer loops are read and written; a loop that may be empty stays one.

// CHECK-DAG: #[[FROM:.*]] = affine_map<(d0) -> (0, d0 * 8 - 1)>
// CHECK-DAG: #[[TO:.*]] = affine_map<(d0) -> (d0 * 8 + 9, 100)>
// CHECK-DAG: #[[ONE:.*]] = affine_map<(d0) -> (d0 - 3, 1)>
// CHECK-LABEL: func.func @main
// CHECK:         affine.for %[[T:.*]] = 0 to 13 {
// CHECK:           memref.alloca
// CHECK:           affine.for %[[I:.*]] = max #[[FROM]](%[[T]]) to min #[[TO]](%[[T]]) {
// CHECK:             affine.store %{{.*}}, %{{.*}}[%[[T]] * -8 + %[[I]] + 1]
// CHECK:           affine.for %{{.*}} = 0 to min #[[ONE]](%[[T]]) {
func.func @main(%a: memref<100xf32>, %b: memref<100xf32>) {
  affine.for %t = 0 to 13 {
    %l = memref.alloca() : memref<10xf32>
    affine.for %i = max affine_map<(d0) -> (d0 * 8 - 1, 0)>(%t) to min affine_map<(d0) -> (d0 * 8 + 9, 100)>(%t) {
      %x = affine.load %a[%i] : memref<100xf32>
      affine.store %x, %l[%i - %t * 8 + 1] : memref<10xf32>
    }
    affine.for %i = 0 to min affine_map<(d0) -> (1, d0 - 3)>(%t) {
      %x = affine.load %l[%i] : memref<10xf32>
      affine.store %x, %b[%i] : memref<100xf32>
    }
  }
  return
}
