// PASSES: merge-margins
//
// An array that is computed has two copies with zeros around, of different widths: it is stored in
// one buffer with the wider margin, and all read that. An argument that has one copy keeps it.

// CHECK-LABEL: func.func @main
// CHECK:         %[[P:.*]] = memref.alloc() {{.*}}: memref<32xf32>
// CHECK:         affine.for %[[I:.*]] = 0 to 8 {
// CHECK:           arith.negf
// CHECK:           affine.store %{{.*}}, %[[P]][%[[I]] + 16]
// CHECK:         affine.store %{{.*}}, %[[P]][15]
// CHECK:         affine.store %{{.*}}, %[[P]][24]
// CHECK:         affine.store %{{.*}}, %[[P]][14]
// CHECK:         affine.for %[[J:.*]] = 0 to 8 {
// CHECK:           affine.load %[[P]][%[[J]] + 16]
// CHECK:           affine.load %[[P]][%[[J]] + 15]
// CHECK:           affine.load %[[P]][%[[J]] + 14]
// CHECK:         memref.alloc() : memref<9xf32>
func.func @main(%a: memref<8xf32>, %b: memref<8xf32>, %c: memref<8xf32>) {
  %zero = arith.constant 0.0 : f32
  %x = memref.alloc() : memref<8xf32>
  affine.for %i = 0 to 8 {
    %0 = affine.load %a[%i] : memref<8xf32>
    %1 = arith.negf %0 : f32
    affine.store %1, %x[%i] : memref<8xf32>
  }
  %p = memref.alloc() : memref<10xf32>
  affine.store %zero, %p[0] : memref<10xf32>
  affine.store %zero, %p[9] : memref<10xf32>
  affine.for %i = 0 to 8 {
    %0 = affine.load %x[%i] : memref<8xf32>
    affine.store %0, %p[%i + 1] : memref<10xf32>
  }
  %q = memref.alloc() : memref<10xf32>
  affine.for %i = 0 to 2 {
    affine.store %zero, %q[%i] : memref<10xf32>
  }
  affine.for %i = 0 to 8 {
    %0 = affine.load %x[%i] : memref<8xf32>
    affine.store %0, %q[%i + 2] : memref<10xf32>
  }
  affine.for %i = 0 to 8 {
    %0 = affine.load %x[%i] : memref<8xf32>
    %1 = affine.load %p[%i] : memref<10xf32>
    %2 = affine.load %q[%i] : memref<10xf32>
    %3 = arith.addf %0, %1 : f32
    %4 = arith.addf %3, %2 : f32
    affine.store %4, %b[%i] : memref<8xf32>
  }
  %r = memref.alloc() : memref<9xf32>
  affine.store %zero, %r[0] : memref<9xf32>
  affine.for %i = 0 to 8 {
    %0 = affine.load %a[%i] : memref<8xf32>
    affine.store %0, %r[%i + 1] : memref<9xf32>
  }
  affine.for %i = 0 to 8 {
    %0 = affine.load %r[%i] : memref<9xf32>
    affine.store %0, %c[%i] : memref<8xf32>
  }
  return
}
