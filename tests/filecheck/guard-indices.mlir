// PASSES: guard-indices
//
// An index from memory is checked, also where an affine expression is made of it; a loop variable,
// what is asserted before, and what is clamped to the array are not.

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

// What is asserted on one side alone, of another extent, afterwards, elsewhere, or of another number
// that a cast makes of it, is checked.
// CHECK-LABEL: func.func private @asserted
// CHECK:         cf.assert %{{.*}}, "below"
// CHECK:         cf.assert %{{.*}}, "index out of range: it must be at least 0 and less than 10"
// CHECK-NEXT:    memref.load
// CHECK:         cf.assert %{{.*}}, "above"
// CHECK-NEXT:    memref.load
// CHECK:         cf.assert %{{.*}}, "index out of range: it must be at least 0 and less than 9"
// CHECK-NEXT:    memref.load
// CHECK:         cf.assert %{{.*}}, "elsewhere"
// CHECK:         cf.assert %{{.*}}, "index out of range: it must be at least 0 and less than 10"
// CHECK-NEXT:    memref.load
// CHECK:         cf.assert %{{.*}}, "wide"
// CHECK-NEXT:    %{{.*}} = arith.index_castui
// CHECK:         cf.assert %{{.*}}, "index out of range: it must be at least 0 and less than 10"
// CHECK-NEXT:    memref.load
// CHECK:         cf.assert %{{.*}}, "index out of range: it must be at least 0 and less than 5"
// CHECK-NEXT:    memref.load
func.func private @asserted(%t: memref<10xf32>, %u: memref<9xf32>, %w: memref<5x2xf32>,
                            %k: index, %j: index, %n: i32, %if: i1) {
  %c0 = arith.constant 0 : index
  %c10 = arith.constant 10 : index
  %c10_i32 = arith.constant 10 : i32
  %below = arith.cmpi slt, %k, %c10 : index
  cf.assert %below, "below"
  %1 = memref.load %t[%k] : memref<10xf32>
  %above = arith.cmpi sge, %k, %c0 : index
  cf.assert %above, "above"
  %2 = memref.load %t[%k] : memref<10xf32>
  %3 = memref.load %u[%k] : memref<9xf32>
  scf.if %if {
    %fits = arith.cmpi ult, %j, %c10 : index
    cf.assert %fits, "elsewhere"
  }
  %4 = memref.load %t[%j] : memref<10xf32>
  %less = arith.cmpi slt, %n, %c10_i32 : i32
  cf.assert %less, "wide"
  %m = arith.index_castui %n : i32 to index
  %5 = memref.load %t[%m] : memref<10xf32>
  %row = affine.apply affine_map<(d0) -> (d0 floordiv 2)>(%j)
  %6 = memref.load %w[%row, %c0] : memref<5x2xf32>
  return
}

// Bits of a number are in bounds if what is left of it is.

// CHECK-LABEL: @bits
// CHECK-NOT:     cf.assert
// CHECK:         memref.load
// CHECK-NOT:     cf.assert
// CHECK:         memref.load
// CHECK:         cf.assert %{{.*}}, "index out of range: it must be at least 0 and less than 500"
// CHECK:         memref.load
func.func private @bits(%t: memref<512xf32>, %u: memref<500xf32>, %n: i64) {
  %c255 = arith.constant 255 : i64
  %c256 = arith.constant 256 : i64
  %digit = arith.andi %n, %c255 : i64
  %i = arith.index_castui %digit : i64 to index
  %1 = memref.load %t[%i] : memref<512xf32>
  %second = arith.ori %digit, %c256 : i64
  %j = arith.index_castui %second : i64 to index
  %2 = memref.load %t[%j] : memref<512xf32>
  %3 = memref.load %u[%j] : memref<500xf32>
  return
}
