// PASSES: choose-layouts
//
// Rows that are added to at run-time places stay rows, and so do the rows that are added, although
// they come from an array, and go to one, whose rows are the columns of these: as columns each of
// their elements would take a line.

// CHECK-LABEL: func.func @main
// CHECK-DAG:     memref.alloc() : memref<4096x16xf32>
// CHECK-DAG:     memref.alloc() : memref<128x16xf32>
// CHECK-NOT:     memref.alloc
func.func @main(%x: memref<16x4096xf32>, %p: memref<4096xi32>, %y: memref<16x128xf32>) {
  %zero = arith.constant 0.0 : f32
  %values = memref.alloc() : memref<4096x16xf32>
  %sums = memref.alloc() : memref<128x16xf32>
  affine.for %i = 0 to 4096 { affine.for %c = 0 to 16 {
    %v = affine.load %x[%c, %i] : memref<16x4096xf32>
    affine.store %v, %values[%i, %c] : memref<4096x16xf32>
  } }
  affine.for %k = 0 to 128 { affine.for %c = 0 to 16 {
    affine.store %zero, %sums[%k, %c] : memref<128x16xf32>
  } }
  affine.for %i = 0 to 4096 { affine.for %c = 0 to 16 {
    %v = affine.load %values[%i, %c] : memref<4096x16xf32>
    %q = affine.load %p[%i] : memref<4096xi32>
    %place = arith.index_cast %q : i32 to index
    %old = memref.load %sums[%place, %c] : memref<128x16xf32>
    %new = arith.addf %old, %v : f32
    memref.store %new, %sums[%place, %c] : memref<128x16xf32>
  } }
  affine.for %c = 0 to 16 { affine.for %k = 0 to 128 {
    %v = affine.load %sums[%k, %c] : memref<128x16xf32>
    affine.store %v, %y[%c, %k] : memref<16x128xf32>
  } }
  return
}
