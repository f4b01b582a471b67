// PASSES: choose-layouts
//
// Elements that are stored at a run-time place of a row lie next to each other, although the array
// is filled in another order. Rows that are stored as a whole at a run-time place stay rows.

// CHECK-LABEL: func.func @main
// CHECK-DAG:     memref.alloc() : memref<8x64xi32>
// CHECK-DAG:     memref.alloc() : memref<64x8xi32>
// CHECK-NOT:     memref.alloc
func.func @main(%x: memref<8x64xi32>, %p: memref<64xi32>, %y: memref<64x8xi32>, %z: memref<64x8xi32>) {
  %scattered = memref.alloc() : memref<64x8xi32>
  %rows = memref.alloc() : memref<64x8xi32>
  affine.for %r = 0 to 8 {
    affine.for %i = 0 to 64 {
      %v = affine.load %x[%r, %i] : memref<8x64xi32>
      %place = arith.index_cast %v : i32 to index
      memref.store %v, %scattered[%place, %r] : memref<64x8xi32>
    }
    affine.for %i = 0 to 64 {
      %v = affine.load %scattered[%i, %r] : memref<64x8xi32>
      %place = arith.index_cast %v : i32 to index
      memref.store %v, %scattered[%place, %r] : memref<64x8xi32>
    }
  }
  affine.for %i = 0 to 64 {
    affine.for %r = 0 to 8 {
      %v = affine.load %scattered[%i, %r] : memref<64x8xi32>
      affine.store %v, %y[%i, %r] : memref<64x8xi32>
    }
  }
  affine.for %i = 0 to 64 {
    %q = affine.load %p[%i] : memref<64xi32>
    %place = arith.index_cast %q : i32 to index
    affine.for %r = 0 to 8 {
      %v = affine.load %y[%i, %r] : memref<64x8xi32>
      memref.store %v, %rows[%place, %r] : memref<64x8xi32>
    }
  }
  affine.for %i = 0 to 64 {
    affine.for %r = 0 to 8 {
      %v = affine.load %rows[%i, %r] : memref<64x8xi32>
      affine.store %v, %z[%i, %r] : memref<64x8xi32>
    }
  }
  return
}
