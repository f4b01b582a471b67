// PASSES: normalize-nests,form-reductions,rename-buffers,fold-ranges
//
// The place of an extremum is the smallest of places and of the largest integer: it does not count
// from the end. What it is clamped to from above may still be less; places of an argument may be
// anything, and so may those of an array that several nests write.

// CHECK-LABEL: func.func @main
// CHECK:         arith.minsi %{{.*}}, %{{.*}} : i32
// CHECK:         affine.for
// CHECK-NEXT:      %[[P:.*]] = affine.load
// CHECK-NEXT:      %[[C15:.*]] = arith.constant 15 : i32
// CHECK-NEXT:      %[[Q:.*]] = arith.minsi %[[P]], %[[C15]] : i32
// CHECK-NEXT:      affine.store %[[Q]]
// CHECK-NEXT:    }
// CHECK:         affine.for
// CHECK:           arith.cmpi slt
// CHECK:           arith.select
// CHECK:         affine.for
// CHECK:         affine.for
// CHECK:         affine.for
// CHECK:           arith.cmpi slt
// CHECK:           arith.select
func.func @main(%x: memref<1000x16xf32>, %least: memref<1000xf32>, %given: memref<1000xi32>,
                %out: memref<3x1000xi32>) {
  %none = arith.constant 2147483647 : i32
  %c0 = arith.constant 0 : i32
  %c15 = arith.constant 15 : i32
  %c16 = arith.constant 16 : i32
  %place = memref.alloc() : memref<1000xi32>
  %behind = memref.alloc() : memref<1000xi1>
  %halves = memref.alloc() : memref<1000xi32>
  affine.for %i = 0 to 1000 {
    affine.store %none, %place[%i] : memref<1000xi32>
  }
  affine.for %i = 0 to 1000 {
    affine.for %j = 0 to 16 {
      %v = affine.load %x[%i, %j] : memref<1000x16xf32>
      %m = affine.load %least[%i] : memref<1000xf32>
      %p = affine.load %place[%i] : memref<1000xi32>
      %is = arith.cmpf oeq, %v, %m : f32
      %k = arith.index_cast %j : index to i32
      %here = arith.select %is, %k, %none : i32
      %q = arith.minsi %here, %p : i32
      affine.store %q, %place[%i] : memref<1000xi32>
    }
  }
  affine.for %i = 0 to 1000 {
    %p = affine.load %place[%i] : memref<1000xi32>
    %b = arith.cmpi slt, %p, %c0 : i32
    affine.store %b, %behind[%i] : memref<1000xi1>
  }
  affine.for %i = 0 to 1000 {
    %b = affine.load %behind[%i] : memref<1000xi1>
    %p = affine.load %place[%i] : memref<1000xi32>
    %e = arith.addi %p, %c16 : i32
    %q = arith.select %b, %e, %p : i32
    %r = arith.minsi %q, %c15 : i32
    %s = arith.maxsi %r, %c0 : i32
    affine.store %s, %out[0, %i] : memref<3x1000xi32>
  }
  affine.for %i = 0 to 1000 {
    %p = affine.load %given[%i] : memref<1000xi32>
    %b = arith.cmpi slt, %p, %c0 : i32
    %e = arith.addi %p, %c16 : i32
    %q = arith.select %b, %e, %p : i32
    affine.store %q, %out[1, %i] : memref<3x1000xi32>
  }
  affine.for %i = 0 to 500 {
    affine.store %c0, %halves[%i] : memref<1000xi32>
  }
  affine.for %i = 500 to 1000 {
    affine.store %c15, %halves[%i] : memref<1000xi32>
  }
  affine.for %i = 0 to 1000 {
    %p = affine.load %halves[%i] : memref<1000xi32>
    %b = arith.cmpi slt, %p, %c0 : i32
    %e = arith.addi %p, %c16 : i32
    %q = arith.select %b, %e, %p : i32
    affine.store %q, %out[2, %i] : memref<3x1000xi32>
  }
  return
}
