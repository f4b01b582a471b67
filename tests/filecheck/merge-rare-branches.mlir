// PASSES: merge-rare-branches
// ARCH: x86-64-v3
//
// The common case of both branches is one block; where either would have been taken, all is computed
// as it was written. A loop that reads what it has written stays as it is.

// CHECK-LABEL: func.func @main
// CHECK:         scf.for
// CHECK:           %[[X:.*]] = vector.load
// CHECK-NEXT:      %[[F:.*]] = arith.mulf %[[X]], %[[X]]
// CHECK-NEXT:      %[[FAR:.*]] = arith.cmpf ogt, %[[X]]
// CHECK-NEXT:      vector.reduction <or>, %[[FAR]]
// CHECK-NEXT:      %[[G:.*]] = arith.addf %[[F]], %[[F]]
// CHECK-NEXT:      %[[LOW:.*]] = arith.cmpf olt, %[[F]]
// CHECK-NEXT:      vector.reduction <or>, %[[LOW]]
// CHECK-NEXT:      %[[FAR1:.*]] = llvm.freeze %[[FAR]]
// CHECK-NEXT:      %[[LOW1:.*]] = llvm.freeze %[[LOW]]
// CHECK-NEXT:      %[[BOTH:.*]] = arith.ori %[[FAR1]], %[[LOW1]] : vector<8xi1>
// CHECK-NEXT:      %[[ANY:.*]] = vector.reduction <or>, %[[BOTH]]
// CHECK:           %[[RARELY:.*]] = llvm.intr.expect %[[ANY]]
// CHECK-NEXT:      %[[R:.*]] = scf.if %[[RARELY]] -> (vector<8xf32>) {
// CHECK:             vector.load
// CHECK:             %[[SLOW:.*]] = scf.if
// CHECK:             arith.addf %[[SLOW]], %[[SLOW]]
// CHECK:             %[[LAST:.*]] = scf.if
// CHECK:             scf.yield %[[LAST]]
// CHECK-NEXT:      } else {
// CHECK-NEXT:        scf.yield %[[G]]
// CHECK-NEXT:      }
// CHECK-NEXT:      vector.store %[[R]]
// CHECK-NEXT:    }
// CHECK:         scf.for
// CHECK:           scf.if
// CHECK:           vector.store
// CHECK:           vector.load
func.func @main(%x: memref<64xf32>, %y: memref<64xf32>) {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %c64 = arith.constant 64 : index
  %k = arith.constant dense<80.0> : vector<8xf32>
  scf.for %i = %c0 to %c64 step %c8 {
    %v = vector.load %x[%i] : memref<64xf32>, vector<8xf32>
    %f = arith.mulf %v, %v : vector<8xf32>
    %far = arith.cmpf ogt, %v, %k : vector<8xf32>
    %any = vector.reduction <or>, %far : vector<8xi1> into i1
    %a = scf.if %any -> (vector<8xf32>) {
      %slow = math.sqrt %v : vector<8xf32>
      %s = arith.select %far, %slow, %f : vector<8xi1>, vector<8xf32>
      scf.yield %s : vector<8xf32>
    } else {
      scf.yield %f : vector<8xf32>
    } {polyblocks.rare}
    %g = arith.addf %a, %a : vector<8xf32>
    %low = arith.cmpf olt, %a, %k : vector<8xf32>
    %anylow = vector.reduction <or>, %low : vector<8xi1> into i1
    %b = scf.if %anylow -> (vector<8xf32>) {
      %slow = math.sqrt %a : vector<8xf32>
      scf.yield %slow : vector<8xf32>
    } else {
      scf.yield %g : vector<8xf32>
    } {polyblocks.rare}
    vector.store %b, %y[%i] : memref<64xf32>, vector<8xf32>
  }
  scf.for %i = %c0 to %c64 step %c8 {
    %v = vector.load %x[%i] : memref<64xf32>, vector<8xf32>
    %far = arith.cmpf ogt, %v, %k : vector<8xf32>
    %any = vector.reduction <or>, %far : vector<8xi1> into i1
    %a = scf.if %any -> (vector<8xf32>) {
      %slow = math.sqrt %v : vector<8xf32>
      scf.yield %slow : vector<8xf32>
    } else {
      scf.yield %v : vector<8xf32>
    } {polyblocks.rare}
    vector.store %a, %y[%i] : memref<64xf32>, vector<8xf32>
    %w = vector.load %x[%i] : memref<64xf32>, vector<8xf32>
    vector.store %w, %y[%i] : memref<64xf32>, vector<8xf32>
  }
  return
}
