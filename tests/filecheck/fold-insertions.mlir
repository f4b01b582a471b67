// PASSES: fold-insertions
//
// What is put into a slice that goes back to its place is put there at once: offsets and strides
// of both are composed, dimensions that the slice lacks have one index.

// CHECK-LABEL: func.func @main
// CHECK-NOT:     tensor.extract_slice
// CHECK:         %[[R:.*]] = tensor.insert_slice %arg0 into %{{.*}}[4, 3] [7, 9] [1, 1] : tensor<7x9xf32> into tensor<12x14xf32>
// CHECK:         return %[[R]]
func.func @main(%x: tensor<7x9xf32>) -> tensor<12x14xf32> {
  %d = tensor.empty() : tensor<12x14xf32>
  %s = tensor.extract_slice %d[0, 3] [12, 9] [1, 1] : tensor<12x14xf32> to tensor<12x9xf32>
  %t = tensor.insert_slice %x into %s[4, 0] [7, 9] [1, 1] : tensor<7x9xf32> into tensor<12x9xf32>
  %r = tensor.insert_slice %t into %d[0, 3] [12, 9] [1, 1] : tensor<12x9xf32> into tensor<12x14xf32>
  return %r : tensor<12x14xf32>
}

// CHECK-LABEL: func.func @strides_and_a_lost_dimension
// CHECK-NOT:     tensor.extract_slice
// CHECK:         tensor.insert_slice %arg0 into %arg1[2, 7, 5] [1, 3, 2] [1, 6, 2] : tensor<3x2xf32> into tensor<4x30x9xf32>
func.func @strides_and_a_lost_dimension(%x: tensor<3x2xf32>, %d: tensor<4x30x9xf32>) -> tensor<4x30x9xf32> {
  %s = tensor.extract_slice %d[2, 3, 1] [1, 13, 8] [1, 2, 1] : tensor<4x30x9xf32> to tensor<13x8xf32>
  %t = tensor.insert_slice %x into %s[2, 4] [3, 2] [3, 2] : tensor<3x2xf32> into tensor<13x8xf32>
  %r = tensor.insert_slice %t into %d[2, 3, 1] [1, 13, 8] [1, 2, 1] : tensor<13x8xf32> into tensor<4x30x9xf32>
  return %r : tensor<4x30x9xf32>
}

// Three levels; the slice between is returned as well.
// CHECK-LABEL: func.func @three_levels
// CHECK:         %[[A:.*]] = tensor.extract_slice %arg1[1, 0]
// CHECK:         %[[B:.*]] = tensor.insert_slice %arg0 into %[[A]][3, 2] [2, 2] [1, 1]
// CHECK:         %[[R:.*]] = tensor.insert_slice %arg0 into %arg1[4, 2] [2, 2] [1, 1]
// CHECK:         return %[[R]], %[[B]]
func.func @three_levels(%x: tensor<2x2xf32>, %d: tensor<9x9xf32>) -> (tensor<9x9xf32>, tensor<7x9xf32>) {
  %s = tensor.extract_slice %d[1, 0] [7, 9] [1, 1] : tensor<9x9xf32> to tensor<7x9xf32>
  %u = tensor.extract_slice %s[0, 1] [7, 8] [1, 1] : tensor<7x9xf32> to tensor<7x8xf32>
  %v = tensor.insert_slice %x into %u[3, 1] [2, 2] [1, 1] : tensor<2x2xf32> into tensor<7x8xf32>
  %t = tensor.insert_slice %v into %s[0, 1] [7, 8] [1, 1] : tensor<7x8xf32> into tensor<7x9xf32>
  %r = tensor.insert_slice %t into %d[1, 0] [7, 9] [1, 1] : tensor<7x9xf32> into tensor<9x9xf32>
  return %r, %t : tensor<9x9xf32>, tensor<7x9xf32>
}

// It goes to another place, or into another tensor, or it is known at run time only: nothing is done.
// CHECK-LABEL: func.func @other_places
// CHECK-COUNT-5: tensor.insert_slice
func.func @other_places(%x: tensor<7x9xf32>, %d: tensor<12x14xf32>, %e: tensor<12x14xf32>, %i: index)
    -> (tensor<12x14xf32>, tensor<12x14xf32>, tensor<12x14xf32>) {
  %s = tensor.extract_slice %d[0, 3] [12, 9] [1, 1] : tensor<12x14xf32> to tensor<12x9xf32>
  %t = tensor.insert_slice %x into %s[4, 0] [7, 9] [1, 1] : tensor<7x9xf32> into tensor<12x9xf32>
  %a = tensor.insert_slice %t into %d[0, 4] [12, 9] [1, 1] : tensor<12x9xf32> into tensor<12x14xf32>
  %b = tensor.insert_slice %t into %e[0, 3] [12, 9] [1, 1] : tensor<12x9xf32> into tensor<12x14xf32>
  %u = tensor.insert_slice %x into %s[%i, 0] [7, 9] [1, 1] : tensor<7x9xf32> into tensor<12x9xf32>
  %c = tensor.insert_slice %u into %d[0, 3] [12, 9] [1, 1] : tensor<12x9xf32> into tensor<12x14xf32>
  return %a, %b, %c : tensor<12x14xf32>, tensor<12x14xf32>, tensor<12x14xf32>
}
