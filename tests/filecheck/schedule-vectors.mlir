// PASSES: schedule-vectors
// ARCH: x86-64-v4
//
// Two chains of operations that wait for each other run side by side, and what the loads need comes
// first. A loop of few operations stays as it is.

// CHECK-LABEL: func.func @main
// CHECK:         scf.for
// CHECK:           %[[X:.*]] = vector.load
// CHECK:           %[[A1:.*]] = math.fma %[[X]], %[[X]], %[[X]] : vector<16xf32>
// CHECK-NEXT:      %[[B1:.*]] = arith.mulf %[[X]], %[[X]] : vector<16xf32>
// CHECK-NEXT:      %[[A2:.*]] = math.fma %[[A1]], %[[X]], %[[X]] : vector<16xf32>
// CHECK-NEXT:      %[[B2:.*]] = arith.mulf %[[B1]], %[[X]] : vector<16xf32>
// CHECK:           vector.store
// CHECK:         scf.for
// CHECK:           %[[Y:.*]] = vector.load
// CHECK-NEXT:      %[[C1:.*]] = arith.mulf %[[Y]], %[[Y]] : vector<16xf32>
// CHECK-NEXT:      %[[C2:.*]] = arith.mulf %[[C1]], %[[Y]] : vector<16xf32>
// CHECK-NEXT:      %[[D1:.*]] = arith.addf %[[Y]], %[[Y]] : vector<16xf32>
func.func @main(%x: memref<64xf32>, %y: memref<64xf32>) {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  scf.for %i = %c0 to %c64 step %c16 {
    %v = vector.load %x[%i] : memref<64xf32>, vector<16xf32>
    %a1 = math.fma %v, %v, %v : vector<16xf32>
    %a2 = math.fma %a1, %v, %v : vector<16xf32>
    %a3 = math.fma %a2, %v, %v : vector<16xf32>
    %a4 = math.fma %a3, %v, %v : vector<16xf32>
    %a5 = math.fma %a4, %v, %v : vector<16xf32>
    %a6 = math.fma %a5, %v, %v : vector<16xf32>
    %a7 = math.fma %a6, %v, %v : vector<16xf32>
    %a8 = math.fma %a7, %v, %v : vector<16xf32>
    %a9 = math.fma %a8, %v, %v : vector<16xf32>
    %a10 = math.fma %a9, %v, %v : vector<16xf32>
    %a11 = math.fma %a10, %v, %v : vector<16xf32>
    %a12 = math.fma %a11, %v, %v : vector<16xf32>
    %a13 = math.fma %a12, %v, %v : vector<16xf32>
    %b1 = arith.mulf %v, %v : vector<16xf32>
    %b2 = arith.mulf %b1, %v : vector<16xf32>
    %b3 = arith.mulf %b2, %v : vector<16xf32>
    %b4 = arith.mulf %b3, %v : vector<16xf32>
    %b5 = arith.mulf %b4, %v : vector<16xf32>
    %b6 = arith.mulf %b5, %v : vector<16xf32>
    %b7 = arith.mulf %b6, %v : vector<16xf32>
    %b8 = arith.mulf %b7, %v : vector<16xf32>
    %b9 = arith.mulf %b8, %v : vector<16xf32>
    %b10 = arith.mulf %b9, %v : vector<16xf32>
    %b11 = arith.mulf %b10, %v : vector<16xf32>
    %b12 = arith.mulf %b11, %v : vector<16xf32>
    %b13 = arith.mulf %b12, %v : vector<16xf32>
    %r = arith.addf %a13, %b13 : vector<16xf32>
    vector.store %r, %y[%i] : memref<64xf32>, vector<16xf32>
  }
  scf.for %i = %c0 to %c64 step %c16 {
    %v = vector.load %x[%i] : memref<64xf32>, vector<16xf32>
    %c1 = arith.mulf %v, %v : vector<16xf32>
    %c2 = arith.mulf %c1, %v : vector<16xf32>
    %d1 = arith.addf %v, %v : vector<16xf32>
    %d2 = arith.mulf %d1, %v : vector<16xf32>
    %r = arith.addf %c2, %d2 : vector<16xf32>
    vector.store %r, %y[%i] : memref<64xf32>, vector<16xf32>
  }
  return
}
