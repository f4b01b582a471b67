// PASSES: fuse-slices
// TARGET: cpu
//
// Rows are added up by class. The loops of a scatter stay in order, so that the class of a row,
// which is clamped first, is computed once for all of its columns: no array holds it. Where columns
// choose among rows that are exponentials, a loop may move, and these are kept.

// CHECK-LABEL: func.func @main
// CHECK:         %[[ROWS:.*]] = memref.alloc() : memref<1000xf32>
// CHECK-NOT:     memref.alloc
// CHECK:         affine.for %[[I:.*]] = 0 to 1000 {
// CHECK-NEXT:      affine.for %[[J:.*]] = 0 to 8 {
// CHECK-DAG:         %[[K:.*]] = affine.load %{{.*}}[%[[I]]] : memref<1000xi32>
// CHECK-DAG:         arith.minsi %[[K]]
// CHECK:             memref.store
// CHECK:         affine.for
// CHECK:           math.exp
// CHECK:           affine.store %{{.*}}, %[[ROWS]]
func.func @main(%points: memref<1000x8xf32>, %which: memref<1000xi32>, %sums: memref<16x8xf32>,
                %x: memref<1000xf32>, %out: memref<1000x8xf32>) {
  %c15 = arith.constant 15 : i32
  %c0 = arith.constant 0 : i32
  %class = memref.alloc() : memref<1000xi32>
  %e = memref.alloc() : memref<1000xf32>
  affine.for %i = 0 to 1000 {
    %k = affine.load %which[%i] : memref<1000xi32>
    %low = arith.minsi %k, %c15 : i32
    %in = arith.maxsi %low, %c0 : i32
    affine.store %in, %class[%i] : memref<1000xi32>
  }
  affine.for %i = 0 to 1000 {
    affine.for %j = 0 to 8 {
      %p = affine.load %points[%i, %j] : memref<1000x8xf32>
      %k = affine.load %class[%i] : memref<1000xi32>
      %r = arith.index_cast %k : i32 to index
      %old = memref.load %sums[%r, %j] : memref<16x8xf32>
      %new = arith.addf %old, %p : f32
      memref.store %new, %sums[%r, %j] : memref<16x8xf32>
    }
  }
  affine.for %i = 0 to 1000 {
    %v = affine.load %x[%i] : memref<1000xf32>
    %w = math.exp %v : f32
    affine.store %w, %e[%i] : memref<1000xf32>
  }
  affine.for %i = 0 to 1000 {
    affine.for %j = 0 to 8 {
      %p = affine.load %points[%i, %j] : memref<1000x8xf32>
      %w = affine.load %e[%i] : memref<1000xf32>
      %q = arith.mulf %p, %w : f32
      affine.store %q, %out[%i, %j] : memref<1000x8xf32>
    }
  }
  return
}
