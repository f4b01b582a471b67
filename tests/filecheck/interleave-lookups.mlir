// PASSES: normalize-nests,narrow-values,interleave-lookups
//
// Two slices are looked up at one place by many more iterations than the array has elements: a copy
// with the slices side by side is made, and looked up instead.

// CHECK-LABEL: func.func @main
// CHECK:         %[[BOTH:.*]] = memref.alloc(){{.*}} : memref<60xf32>
// CHECK:         affine.for %[[X:.*]] = 0 to 30 {
// CHECK:           %[[P:.*]] = affine.load %[[FLAT:.*]][%[[X]]]
// CHECK:           affine.store %[[P]], %[[BOTH]][%[[X]] * 2]
// CHECK:           %[[Q:.*]] = affine.load %[[FLAT]][%[[X]] + 30]
// CHECK:           affine.store %[[Q]], %[[BOTH]][%[[X]] * 2 + 1]
// CHECK:         affine.for
// CHECK-NOT:       memref.load %[[FLAT]]
// CHECK:           %[[AT:.*]] = arith.muli %{{.*}}, %c2
// CHECK:           memref.load %[[BOTH]][%{{.*}}] : memref<60xf32>
// CHECK:           arith.addi %[[AT]], %c1
// CHECK:           memref.load %[[BOTH]][%{{.*}}] : memref<60xf32>
//
// Too few iterations, one slice of three that is not looked up, a place that is the same for all
// iterations, and slices that lie so already: no copy.
//
// CHECK-NOT:     memref.load %[[BOTH]]
func.func @main(%a: memref<2x30xf32>, %at: memref<5000xi64>, %out: memref<5000xf32>, %few: memref<50xf32>,
                %three: memref<3x30xf32>, %near: memref<30x2xf32>, %o2: memref<5000xf32>, %o3: memref<5000xf32>, %o4: memref<5000xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  affine.for %i = 0 to 5000 {
    %n = affine.load %at[%i] : memref<5000xi64>
    %x = arith.index_cast %n : i64 to index
    %p = memref.load %a[%c0, %x] : memref<2x30xf32>
    %q = memref.load %a[%c1, %x] : memref<2x30xf32>
    %s = arith.addf %p, %q : f32
    affine.store %s, %out[%i] : memref<5000xf32>
  }
  affine.for %i = 0 to 50 {
    %n = affine.load %at[%i] : memref<5000xi64>
    %x = arith.index_cast %n : i64 to index
    %p = memref.load %a[%c0, %x] : memref<2x30xf32>
    %q = memref.load %a[%c1, %x] : memref<2x30xf32>
    %s = arith.addf %p, %q : f32
    affine.store %s, %few[%i] : memref<50xf32>
  }
  affine.for %i = 0 to 5000 {
    %n = affine.load %at[%i] : memref<5000xi64>
    %x = arith.index_cast %n : i64 to index
    %p = memref.load %three[%c0, %x] : memref<3x30xf32>
    %q = memref.load %three[%c1, %x] : memref<3x30xf32>
    %s = arith.addf %p, %q : f32
    affine.store %s, %o2[%i] : memref<5000xf32>
  }
  affine.for %i = 0 to 5000 {
    %n = affine.load %at[7] : memref<5000xi64>
    %x = arith.index_cast %n : i64 to index
    %p = memref.load %a[%c0, %x] : memref<2x30xf32>
    %q = memref.load %a[%c1, %x] : memref<2x30xf32>
    %s = arith.addf %p, %q : f32
    affine.store %s, %o3[%i] : memref<5000xf32>
  }
  affine.for %i = 0 to 5000 {
    %n = affine.load %at[%i] : memref<5000xi64>
    %x = arith.index_cast %n : i64 to index
    %p = memref.load %near[%x, %c0] : memref<30x2xf32>
    %q = memref.load %near[%x, %c1] : memref<30x2xf32>
    %s = arith.addf %p, %q : f32
    affine.store %s, %o4[%i] : memref<5000xf32>
  }
  return
}
