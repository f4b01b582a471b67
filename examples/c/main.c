/* Runs a model that was written in PyTorch, without Python:
 *
 *   polyblocks compile classifier.py:classifier --emit library --arch x86-64-v3,x86-64-v4
 *   gcc -std=c11 main.c -L. -lclassifier -Wl,-rpath,'$ORIGIN' -o main
 *   ./main
 */
#include <stdio.h>

#include "classifier.h"

int main(void) {
  static float image[CLASSIFIER_INPUT_COUNT];
  float scores[CLASSIFIER_RESULT_COUNT];
  for (size_t k = 0; k < CLASSIFIER_INPUT_COUNT; ++k)
    image[k] = (float)(k * 7919 % 1000) / 1000.0f;

  int32_t status = classifier(image, CLASSIFIER_INPUT_COUNT, scores, CLASSIFIER_RESULT_COUNT);
  if (status != CLASSIFIER_OK) {
    fprintf(stderr, "error %d: %s\n", status, classifier_error());
    return 1;
  }
  fprintf(stderr, "code for %s\n", classifier_arch());
  for (size_t k = 0; k < CLASSIFIER_RESULT_COUNT; ++k)
    printf("%.6f\n", scores[k]);

  /* A wrong size is an error, and nothing is run. */
  status = classifier(image, CLASSIFIER_INPUT_COUNT - 1, scores, CLASSIFIER_RESULT_COUNT);
  fprintf(stderr, "%s\n", classifier_error());
  return status == CLASSIFIER_WRONG_SIZE ? 0 : 1;
}
