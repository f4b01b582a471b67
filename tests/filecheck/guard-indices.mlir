// PASSES: guard-indices
//
// An index from memory is checked; a loop variable, what is asserted already, and what is clamped
// to the array are not.

// CHECK-LABEL: func.func @main
// CHECK:         affine.for %[[I:.*]] = 0 to 8 {
// CHECK:           %[[L:.*]] = arith.index_cast
// CHECK:           %[[OK:.*]] = arith.cmpi ult, %[[L]], %{{.*}} : index
// CHECK:           cf.assert %[[OK]], "index out of range: it must be at least 0 and less than 10"
// CHECK-NEXT:      memref.load
// CHECK:         scf.for
// CHECK-NOT:       cf.assert
// CHECK:           memref.store
// CHECK:           cf.assert %{{.*}}, "mine"
// CHECK-NOT:       cf.assert
func.func @main(%t: memref<10xf32>, %p: memref<8xi64>, %o: memref<8xf32>) {
  affine.for %i = 0 to 8 {
    %k = affine.load %p[%i] : memref<8xi64>
    %l = arith.index_cast %k : i64 to index
    %x = memref.load %t[%l] : memref<10xf32>
    affine.store %x, %o[%i] : memref<8xf32>
  }
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.for %i = %c0 to %c8 step %c1 {
    %z = arith.constant 0.0 : f32
    memref.store %z, %o[%i] : memref<8xf32>
    %k = memref.load %p[%i] : memref<8xi64>
    %c10 = arith.constant 10 : i64
    %ok = arith.cmpi ult, %k, %c10 : i64
    cf.assert %ok, "mine"
    %l = arith.index_cast %k : i64 to index
    %x = memref.load %t[%l] : memref<10xf32>
    memref.store %x, %o[%i] : memref<8xf32>
  }
  return
}

// CHECK-LABEL: func.func private @clamped
// CHECK:         affine.for
// CHECK-NOT:       cf.assert
// CHECK:           memref.load %{{.*}}[%[[C:.*]]] : memref<10xf32>
// CHECK-NOT:       cf.assert
// CHECK:           memref.load %{{.*}} : memref<12xf32>
// CHECK:           cf.assert
// CHECK-NEXT:      memref.load %{{.*}} : memref<9xf32>
func.func private @clamped(%t: memref<10xf32>, %u: memref<12xf32>, %v: memref<9xf32>,
                           %p: memref<3xi32>, %o: memref<3xf32>) {
  affine.for %i = 0 to 3 {
    %k = affine.load %p[%i] : memref<3xi32>
    %c0 = arith.constant 0 : i32
    %c9 = arith.constant 9 : i32
    %h = arith.minsi %k, %c9 : i32
    %l = arith.maxsi %h, %c0 : i32
    %at = arith.index_cast %l : i32 to index
    %x = memref.load %t[%at] : memref<10xf32>
    %next = arith.addi %at, %i : index
    %y = memref.load %u[%next] : memref<12xf32>
    %z = memref.load %v[%at] : memref<9xf32>
    %s = arith.addf %x, %y : f32
    %r = arith.addf %s, %z : f32
    affine.store %r, %o[%i] : memref<3xf32>
  }
  return
}
