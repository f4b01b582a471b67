// PASSES: choose-layouts
//
// A number for each row, whose rows are neighbours, says nothing of how the rows' own elements lie,
// however often it is read with them.

// CHECK-LABEL: func.func @main
// CHECK:         %[[SCALED:.*]] = memref.alloc() : memref<64x512xf32>
// CHECK:         affine.store %{{.*}}, %[[SCALED]][%{{.*}}, %{{.*}}] : memref<64x512xf32>

module {
  func.func @main(%row: memref<64xf32>, %y: memref<64x512xf32>) {
    %scaled = memref.alloc() : memref<64x512xf32>
    affine.for %i = 0 to 64 { affine.for %j = 0 to 512 {
      %s = affine.load %row[%i] : memref<64xf32>
      affine.store %s, %scaled[%i, %j] : memref<64x512xf32>
    } }
    affine.for %i = 0 to 64 { affine.for %j = 0 to 512 {
      %s = affine.load %row[%i] : memref<64xf32>
      %v = affine.load %scaled[%i, %j] : memref<64x512xf32>
      %w = arith.addf %s, %v : f32
      affine.store %w, %scaled[%i, %j] : memref<64x512xf32>
    } }
    affine.for %i = 0 to 64 { affine.for %j = 0 to 512 {
      %v = affine.load %scaled[%i, %j] : memref<64x512xf32>
      affine.store %v, %y[%i, %j] : memref<64x512xf32>
    } }
    return
  }
}
