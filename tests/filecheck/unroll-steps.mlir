// PASSES: unroll-steps
//
// Ten steps: two iterations of four, and two steps behind the loop. A loop whose steps differ by
// their number stays, and so does one over a state that is soon copied.

// CHECK-LABEL: func.func @main
// CHECK:         %[[TWO:.*]] = arith.constant 2 : index
// CHECK:         %[[R:.*]] = scf.for %{{.*}} = %c0 to %[[TWO]] step %c1 iter_args(%[[X:.*]] = %arg0)
// CHECK:           %[[A:.*]] = math.absf %[[X]]
// CHECK-NEXT:      %[[B:.*]] = math.absf %[[A]]
// CHECK-NEXT:      %[[C:.*]] = math.absf %[[B]]
// CHECK-NEXT:      %[[D:.*]] = math.absf %[[C]]
// CHECK-NEXT:      scf.yield %[[D]]
// CHECK:         %[[E:.*]] = math.absf %[[R]]
// CHECK-NEXT:    %[[F:.*]] = math.absf %[[E]]
// CHECK-NEXT:    return %[[F]]
func.func @main(%a: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c10 = arith.constant 10 : index
  %r = scf.for %k = %c0 to %c10 step %c1 iter_args(%x = %a) -> (tensor<64x64xf32>) {
    %y = math.absf %x : tensor<64x64xf32>
    scf.yield %y : tensor<64x64xf32>
  }
  return %r : tensor<64x64xf32>
}
