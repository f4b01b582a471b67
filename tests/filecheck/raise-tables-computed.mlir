// PASSES: raise-tables
//
// Windows of three elements: the table of their places is a sum of iteration numbers. Of an array
// that the caller gives nothing is known.

// CHECK-LABEL: func.func @main
// CHECK:         arith.addi
// CHECK:         }
// CHECK:         }
// CHECK:         affine.for %[[I:.*]] = 0 to 30 {
// CHECK:           affine.for %[[J:.*]] = 0 to 3 {
// CHECK-NOT:         memref.load
// CHECK:             affine.load %{{.*}}[%[[I]] + %[[J]]] : memref<32xf32>
// CHECK:         arith.addi
// CHECK:         memref.load
func.func @main(%a: memref<32xf32>, %g: memref<30xi64>, %b: memref<30x3xf32>, %c: memref<30xf32>) {
  %t = memref.alloc() : memref<30xi64>
  affine.for %x = 0 to 30 {
    %i = arith.index_cast %x : index to i64
    affine.store %i, %t[%x] : memref<30xi64>
  }
  %s = memref.alloc() : memref<3x30xi64>
  affine.for %k = 0 to 3 {
    affine.for %x = 0 to 30 {
      %p = affine.load %t[%x] : memref<30xi64>
      %q = affine.load %t[%k] : memref<30xi64>
      %r = arith.addi %p, %q : i64
      affine.store %r, %s[%k, %x] : memref<3x30xi64>
    }
  }
  affine.for %x = 0 to 30 {
    affine.for %k = 0 to 3 {
      %p = affine.load %s[%k, %x] : memref<3x30xi64>
      %i = arith.index_cast %p : i64 to index
      %v = memref.load %a[%i] : memref<32xf32>
      affine.store %v, %b[%x, %k] : memref<30x3xf32>
    }
  }
  %u = memref.alloc() : memref<30xi64>
  affine.for %x = 0 to 30 {
    %p = affine.load %g[%x] : memref<30xi64>
    %i = arith.index_cast %x : index to i64
    %r = arith.addi %p, %i : i64
    affine.store %r, %u[%x] : memref<30xi64>
  }
  affine.for %x = 0 to 30 {
    %p = affine.load %u[%x] : memref<30xi64>
    %i = arith.index_cast %p : i64 to index
    %v = memref.load %a[%i] : memref<32xf32>
    affine.store %v, %c[%x] : memref<30xf32>
  }
  return
}
