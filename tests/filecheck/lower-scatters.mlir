// PASSES: lower-scatters
//
// Rows added to rows of a table, and numbers put at pairs of indices.

// CHECK-LABEL: @main
// CHECK:         affine.for %[[I:.*]] = 0 to 1000 {
// CHECK-NEXT:      affine.for %[[J:.*]] = 0 to 64 {
// CHECK-NEXT:        %[[U:.*]] = affine.load %arg0[%[[I]], 0, %[[J]]]
// CHECK-NEXT:        %[[R:.*]] = affine.load %arg1[%[[I]], 0]
// CHECK-NEXT:        %[[ROW:.*]] = arith.index_cast %[[R]] : i64 to index
// CHECK-NEXT:        %[[OLD:.*]] = memref.load %arg2[%[[ROW]], %[[J]]]
// CHECK-NEXT:        %[[NEW:.*]] = arith.addf %[[OLD]], %[[U]]
// CHECK-NEXT:        memref.store %[[NEW]], %arg2[%[[ROW]], %[[J]]]
//
// CHECK:         affine.for %[[I:.*]] = 0 to 50 {
// CHECK-NEXT:      %[[U:.*]] = affine.load %arg3[%[[I]]]
// CHECK:           affine.load %arg4[%[[I]], 0]
// CHECK:           affine.load %arg4[%[[I]], 1]
// CHECK:           memref.store %[[U]], %arg2[%{{.*}}, %{{.*}}]
//
// CHECK-NOT:     tm_tensor
func.func @main(%updates: memref<1000x1x64xf32>, %rows: memref<1000x1xi64>,
                %table: memref<100x64xf32>, %values: memref<50xf32>, %places: memref<50x2xi32>) {
  tm_tensor.scatter {dimension_map = array<i64: 0>} unique_indices(false) ins(%updates, %rows : memref<1000x1x64xf32>, memref<1000x1xi64>) outs(%table : memref<100x64xf32>) {
  ^bb0(%u: f32, %old: f32):
    %s = arith.addf %old, %u : f32
    tm_tensor.yield %s : f32
  }
  tm_tensor.scatter {dimension_map = array<i64: 0, 1>} unique_indices(false) ins(%values, %places : memref<50xf32>, memref<50x2xi32>) outs(%table : memref<100x64xf32>) {
  ^bb0(%u: f32, %old: f32):
    tm_tensor.yield %u : f32
  }
  func.return
}
